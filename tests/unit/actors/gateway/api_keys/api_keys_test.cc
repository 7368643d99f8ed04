#include "actors/gateway/api_keys.h"

#include <boost/test/unit_test.hpp>

namespace troupe {
namespace {

BOOST_AUTO_TEST_SUITE(api_keys)

BOOST_AUTO_TEST_CASE(each_of_the_keys_is_accepted_whole_and_nothing_else) {
  const ApiKeys keys({"first-key", "second-key"});
  BOOST_TEST(keys.required());
  BOOST_TEST(keys.accepts("first-key"));
  BOOST_TEST(keys.accepts("second-key"));
  for (const char* wrong : {"", "first-ke", "first-key ", "FIRST-KEY", "first-keysecond-key"}) {
    BOOST_TEST(!keys.accepts(wrong), wrong);
  }
}

BOOST_AUTO_TEST_CASE(without_keys_none_is_required_and_none_is_accepted) {
  const ApiKeys keys;
  BOOST_TEST(!keys.required());
  BOOST_TEST(!keys.accepts(""));
}

BOOST_AUTO_TEST_CASE(replaced_keys_are_good_no_more) {
  ApiKeys keys({"first-key"});
  keys.replace({"second-key"});
  BOOST_TEST(!keys.accepts("first-key"));
  BOOST_TEST(keys.accepts("second-key"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
