// Each oracle is shown to fail on a bug that is planted for it.

#include <fcntl.h>
#include <glog/logging.h>
#include <sys/wait.h>
#include <unistd.h>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <csignal>
#include <ostream>
#include <set>
#include <string>

#include "sim/swarm.h"

namespace troupe::sim {
namespace {

constexpr uint64_t kSeedsMax = 40;

struct Planted {
  Plant plant;
  bool faults;
  // Any of these rules may be the first to notice; "assertion": the core noticed by itself.
  std::set<std::string> oracles;
};

std::ostream& operator<<(std::ostream& out, const Planted& planted) {
  return out << to_string(planted.plant) << (planted.faults ? " with faults" : "");
}

const Planted kPlanted[] = {
    {Plant::kLoseEmission, false, {"failure", "liveness"}},
    {Plant::kLoseEmission, true, {"failure", "liveness"}},
    {Plant::kDoubleEnd, false, {"once"}},
    {Plant::kWrongToken, false, {"tokens"}},
    {Plant::kWrongToken, true, {"tokens"}},
    {Plant::kLoseBlock, false, {"tokens"}},
    {Plant::kIgnoreFences, false, {"tokens"}},
    {Plant::kIgnoreFences, true, {"tokens"}},
    {Plant::kLateLanding, false, {"deadline"}},
    {Plant::kSkipEndLease, false, {"assertion"}},
    {Plant::kSkipRelease, false, {"liveness"}},
    {Plant::kSkipRelease, true, {"liveness"}},
    {Plant::kDropKvReplies, false, {"liveness"}},
    {Plant::kDropStep, false, {"failure", "liveness"}},
    {Plant::kDropStep, true, {"liveness"}},
    {Plant::kLoseFinished, false, {"liveness"}},
    {Plant::kOverLimit, false, {"queue"}},
    {Plant::kMiscount, false, {"metrics"}},
    {Plant::kUnseeded, false, {"unseed"}},
    {Plant::kForeignBlock, false, {"owner"}},
    {Plant::kForeignBlock, true, {"owner"}},
    {Plant::kForeignWindow, false, {"owner"}},
    {Plant::kForeignWindow, true, {"owner"}},
    {Plant::kWrongUsage, false, {"usage"}},
    {Plant::kStrayMessage, false, {"message"}},
    {Plant::kTornMessage, false, {"codec"}},
};

// Runs one seed in a process of its own, for some bugs trip the cores' assertions. The rule that
// was broken, "assertion", or nothing.
std::string broken_rule(uint64_t seed, const Planted& planted) {
  int ends[2];
  BOOST_REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  BOOST_REQUIRE(child >= 0);
  if (child == 0) {
    // The test framework's handlers would report the assertion as the test's own.
    std::signal(SIGABRT, SIG_DFL);
    const int silence = open("/dev/null", O_WRONLY);
    dup2(silence, STDERR_FILENO);
    const Scenario scenario =
        draw_scenario(seed, {.faults = planted.faults, .plant = planted.plant});
    const Outcome outcome = run_scenario(scenario, planted.plant == Plant::kUnseeded);
    const std::string& rule = outcome.violated_oracle;
    _exit(write(ends[1], rule.data(), rule.size()) == static_cast<ssize_t>(rule.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string rule;
  char buffer[256];
  for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof buffer)) > 0;)
    rule.append(buffer, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  BOOST_REQUIRE(waitpid(child, &status, 0) == child);
  if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGABRT ? "assertion" : "crash";
  return rule;
}

BOOST_AUTO_TEST_SUITE(planted_bugs)

BOOST_DATA_TEST_CASE(a_planted_bug_is_caught, boost::unit_test::data::make(kPlanted), planted) {
  FLAGS_minloglevel = google::GLOG_FATAL;
  for (uint64_t seed = 1; seed <= kSeedsMax; ++seed) {
    const std::string rule = broken_rule(seed, planted);
    if (rule.empty()) continue;
    BOOST_TEST(planted.oracles.contains(rule), "seed " << seed << " breaks \"" << rule << '"');
    return;
  }
  BOOST_ERROR("no rule was broken within " << kSeedsMax << " seeds");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe::sim
