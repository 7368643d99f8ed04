#include "apps/node/child_process.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <string>
#include <vector>

using namespace troupe;

BOOST_AUTO_TEST_SUITE(child_process)

namespace {

using Lines = std::vector<std::string>;

std::unique_ptr<ChildProcess> shell(const std::string& script) {
  return ChildProcess::start({{"/bin/sh", "-c", script}, {"GREETING=hello"}}).value();
}

// Everything it prints until it has closed both streams, at most 10 s.
std::pair<Lines, Lines> lines_of(ChildProcess& child) {
  std::pair<Lines, Lines> lines;
  for (int turns = 0; turns < 1000; ++turns) {
    pollfd fds[] = {{child.descriptor(ChildProcess::kOut), POLLIN, 0},
                    {child.descriptor(ChildProcess::kErr), POLLIN, 0}};
    if (fds[0].fd < 0 && fds[1].fd < 0) return lines;
    ::poll(fds, 2, 10'000);
    child.read_lines(ChildProcess::kOut, [&](auto line) { lines.first.emplace_back(line); });
    child.read_lines(ChildProcess::kErr, [&](auto line) { lines.second.emplace_back(line); });
  }
  BOOST_FAIL("the child does not end");
  return lines;
}

std::string wait_for_end(ChildProcess& child) {
  lines_of(child);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(child.pid()), &info, WEXITED | WNOWAIT);
  return child.ending().value_or("runs on");
}

Lines cut(std::initializer_list<std::string_view> pieces) {
  Lines lines;
  LineCutter cutter;
  const auto take = [&](std::string_view line) { lines.emplace_back(line); };
  for (const std::string_view piece : pieces) cutter.add(piece, take);
  cutter.end(take);
  return lines;
}

}  // namespace

BOOST_AUTO_TEST_CASE(lines_are_whole_however_their_bytes_come) {
  BOOST_TEST(cut({"a\nb", "c\n", "", "d"}) == (Lines{"a", "bc", "d"}),
             boost::test_tools::per_element());
  BOOST_TEST(cut({"\n\na\n"}) == (Lines{"", "", "a"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_line_without_end_comes_in_pieces) {
  const std::string piece(kChildLineBytesMax, 'x');
  BOOST_TEST(cut({piece, piece, "y\n"}) == (Lines{piece, piece, "y"}),
             boost::test_tools::per_element());
  BOOST_TEST(cut({piece + "\nz"}) == (Lines{piece, "z"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(both_streams_and_the_environment_are_the_childs) {
  const auto child = shell("echo $GREETING $HOME; echo no >&2; read x || exit 3");
  const auto [out, err] = lines_of(*child);
  BOOST_TEST(out == Lines{"hello"}, boost::test_tools::per_element());
  BOOST_TEST(err == Lines{"no"}, boost::test_tools::per_element());
  BOOST_TEST(wait_for_end(*child) == "ended with 3");
  BOOST_TEST(!child->running());
}

BOOST_AUTO_TEST_CASE(a_killed_child_says_so) {
  const auto child = shell("exec sleep 100");
  BOOST_TEST(!child->ending().has_value());
  child->send_signal(SIGTERM);
  BOOST_TEST(wait_for_end(*child) == "was killed by signal 15");
}

BOOST_AUTO_TEST_CASE(a_program_that_is_not_there_ends_with_an_error_line) {
  const auto child = ChildProcess::start({{"/no/such/program"}, {}}).value();
  const auto [out, err] = lines_of(*child);
  BOOST_TEST(err.size() == 1U);
  BOOST_TEST(wait_for_end(*child) == "ended with 127");
}

BOOST_AUTO_TEST_CASE(the_child_does_not_outlive_the_object) {
  pid_t pid = 0;
  {
    const auto child = shell("exec sleep 100");
    pid = child->pid();
  }
  BOOST_TEST(::kill(pid, 0) == -1);
}

BOOST_AUTO_TEST_CASE(the_childs_signals_are_not_blocked_as_ours_are) {
  sigset_t ours, before;
  ::sigemptyset(&ours);
  ::sigaddset(&ours, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &ours, &before);
  const auto child = shell("kill -TERM $$; echo survived");
  BOOST_TEST(wait_for_end(*child) == "was killed by signal 15");
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
