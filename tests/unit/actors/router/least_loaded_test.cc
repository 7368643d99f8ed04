#include "policies/routing/least_loaded.h"

#include <boost/test/unit_test.hpp>

namespace troupe {
namespace {

std::optional<size_t> choose(std::vector<WorkerView> workers) {
  return LeastLoaded().decide({workers, 10});
}

BOOST_AUTO_TEST_SUITE(least_loaded)

BOOST_AUTO_TEST_CASE(takes_the_worker_with_the_fewest_requests_then_tokens_then_the_lowest_id) {
  BOOST_TEST(*choose({{WorkerId(0), true, 3, 5}, {WorkerId(1), true, 2, 900}}) == 1U);
  BOOST_TEST(*choose({{WorkerId(0), true, 2, 900}, {WorkerId(1), true, 2, 5}}) == 1U);
  BOOST_TEST(*choose({{WorkerId(5), true, 2, 5}, {WorkerId(4), true, 2, 5}}) == 1U);
}

BOOST_AUTO_TEST_CASE(never_takes_one_that_does_not_accept) {
  BOOST_TEST(*choose({{WorkerId(0), false, 0, 0}, {WorkerId(1), true, 9, 9}}) == 1U);
  BOOST_TEST(!choose({{WorkerId(0), false, 0, 0}}).has_value());
  BOOST_TEST(!choose({}).has_value());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
