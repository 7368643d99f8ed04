#include "sim/swarm.h"

#include <glog/logging.h>
#include <boost/test/unit_test.hpp>

#include <cstdlib>

namespace troupe::sim {
namespace {

// More by environment variable: what tools/check --long does.
uint64_t seeds(uint64_t usual) {
  const char* asked = std::getenv("TROUPE_SIM_SEEDS");
  return asked == nullptr ? usual : std::strtoull(asked, nullptr, 10);
}

void run_seeds(uint64_t first, uint64_t count, const SwarmOptions& options) {
  FLAGS_minloglevel = google::GLOG_ERROR;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Scenario scenario = draw_scenario(seed, options);
    BOOST_TEST_INFO_SCOPE("seed " << seed << ": " << describe(scenario));
    BOOST_TEST_CHECKPOINT("seed " << seed);
    const Outcome outcome = run_scenario(scenario, seed % 20 == 0);
    BOOST_TEST(outcome.violated_oracle.empty(), explain(scenario, options, outcome));
  }
}

BOOST_AUTO_TEST_SUITE(swarm)

BOOST_AUTO_TEST_CASE(every_seed_without_faults_keeps_every_rule) {
  run_seeds(1, seeds(200), {.faults = false});
}

BOOST_AUTO_TEST_CASE(every_seed_with_faults_keeps_every_rule) {
  run_seeds(1, seeds(400), {.faults = true});
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe::sim
