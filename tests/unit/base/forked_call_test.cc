#include "base/os/forked_call.h"

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <cstdlib>

namespace troupe {
namespace {

constexpr std::chrono::seconds kLong{30};

BOOST_AUTO_TEST_SUITE(forked_call)

BOOST_AUTO_TEST_CASE(the_result_comes_back_and_nothing_else_does) {
  int here = 1;
  const auto result = call_in_fork(
      [&] {
        here = 2;
        return 42;
      },
      kLong);
  BOOST_TEST((result == 42));
  BOOST_TEST(here == 1);
}

BOOST_AUTO_TEST_CASE(a_call_that_ends_its_process_gives_nothing) {
  for (const int number : {SIGILL, SIGSEGV, SIGABRT, SIGKILL})
    BOOST_TEST(!call_in_fork([&] { return std::raise(number); }, kLong).has_value());
}

BOOST_AUTO_TEST_CASE(a_call_that_never_ends_is_ended) {
  const auto forever = [] {
    for (;;) ::pause();
    return 0;
  };
  BOOST_TEST(!call_in_fork(forever, std::chrono::milliseconds(20)).has_value());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
