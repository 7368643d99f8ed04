#include "apps/node/supervisor.h"

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <string>

#include "base/os/system_clock.h"

using namespace troupe;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(supervisor)

namespace {

struct Rig {
  SystemClock clock;
  std::string printed;
  Supervisor supervisor{SupervisorOptions{{"PATH=/usr/bin:/bin"}, 10ms, 40ms, 10'000ms}, clock,
                        [this](std::string_view text) { printed += text; }};

  size_t add(const std::string& name, const std::string& script) {
    // What is put behind the script are its arguments $1 $2 …
    return supervisor
        .add({name, {"/bin/sh", "-c", script, "sh"}, {{kSaysListening, "--port", 5}}, true})
        .value();
  }
  size_t count(const std::string& text) const {
    size_t found = 0;
    for (size_t at = printed.find(text); at != std::string::npos; at = printed.find(text, at + 1))
      ++found;
    return found;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(members_are_ready_when_they_say_so_and_their_lines_carry_their_name) {
  Rig rig;
  const size_t member = rig.add("one", "echo listening: here:12; echo ready: yes; exec sleep 100");
  BOOST_TEST(rig.supervisor.run_until([&] { return rig.supervisor.all_ready(); }, 10s).ok());
  BOOST_TEST(rig.supervisor.said(member, kSaysListening).value() == "here:12");
  BOOST_TEST(rig.count("[one] ready: yes\n") == 1U);
}

BOOST_AUTO_TEST_CASE(a_member_that_was_ready_is_started_again_at_its_port) {
  Rig rig;
  const size_t member =
      rig.add("one", "echo got $1 $2; echo listening: here:77; echo ready: yes; exit 4");
  const auto lives = [&] { return rig.count("got --port 77\n") >= 2; };
  BOOST_TEST(rig.supervisor.run_until(lives, 10s).ok());
  BOOST_TEST(rig.count("ended with 4; it is started again in") >= 2U);
  BOOST_TEST(rig.count("[one] got --port 5\n") == 1U);
  rig.supervisor.end(member, 1, 10s);
}

BOOST_AUTO_TEST_CASE(a_member_that_never_was_ready_ends_it_all) {
  Rig rig;
  rig.add("one", "echo why >&2; exit 9");
  const Status status = rig.supervisor.run_until([] { return false; }, 10s);
  BOOST_TEST((status.code() == StatusCode::kUnavailable));
  BOOST_TEST(status.message().find("ended with 9") != std::string::npos);
  BOOST_TEST(rig.count("[one] why\n") == 1U);
}

BOOST_AUTO_TEST_CASE(a_wait_has_its_deadline) {
  Rig rig;
  rig.add("one", "exec sleep 100");
  const Status status = rig.supervisor.run_until([] { return false; }, 20ms);
  BOOST_TEST((status.code() == StatusCode::kDeadlineExceeded));
}

BOOST_AUTO_TEST_CASE(a_signal_ends_the_wait) {
  Rig rig;
  rig.add("one", "exec sleep 100");
  ::kill(::getpid(), SIGTERM);
  BOOST_TEST(rig.supervisor.run_until_signal().ok());
}

BOOST_AUTO_TEST_CASE(who_does_not_end_in_time_is_killed_and_not_started_again) {
  Rig rig;
  const size_t polite = rig.add("polite", "echo ready: y; exec sleep 100");
  const size_t deaf =
      rig.add("deaf", "trap '' TERM; echo ready: y; while true; do sleep 0.01; done");
  BOOST_TEST(rig.supervisor.run_until([&] { return rig.supervisor.all_ready(); }, 10s).ok());
  rig.supervisor.end(polite, 1, 10s);
  BOOST_TEST(!rig.supervisor.ready(polite));
  BOOST_TEST(rig.supervisor.ready(deaf));
  rig.supervisor.end(deaf, 1, 50ms);
  BOOST_TEST(rig.count("deaf is ended at once") == 1U);
  BOOST_TEST(rig.count("started again") == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
