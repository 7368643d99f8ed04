#include "troupe/status.h"

#include <boost/test/unit_test.hpp>

#include <memory>

namespace troupe {
namespace {

Result<int> half(int number) {
  if (number % 2 != 0) return invalid_argument("the number is odd; give an even one", "number");
  return number / 2;
}

Result<int> quarter(int number) {
  TROUPE_ASSIGN_OR_RETURN(const int halved, half(number));
  return half(halved);
}

Status check(int number) {
  TROUPE_RETURN_IF_ERROR(half(number).status());
  return ok_status();
}

BOOST_AUTO_TEST_SUITE(status)

BOOST_AUTO_TEST_CASE(a_result_is_a_value_or_a_failed_status) {
  BOOST_TEST(quarter(8).value() == 2);
  const auto failed = quarter(6);
  BOOST_TEST(!failed.ok());
  BOOST_TEST((failed.status().code() == StatusCode::kInvalidArgument));
  BOOST_TEST(failed.status().param() == "number");
}

BOOST_AUTO_TEST_CASE(the_macros_pass_a_failure_on_and_nothing_else) {
  BOOST_TEST(check(2).ok());
  BOOST_TEST(!check(3).ok());
}

BOOST_AUTO_TEST_CASE(a_result_moves_what_it_holds) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(7));
  const std::unique_ptr<int> taken = std::move(result).value();
  BOOST_TEST(*taken == 7);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
