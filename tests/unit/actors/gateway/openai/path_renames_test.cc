#include "actors/gateway/openai/path_renames.h"

#include <boost/test/unit_test.hpp>

namespace troupe {
namespace {

BOOST_AUTO_TEST_CASE(the_longest_path_that_contains_a_field_renames_it) {
  PathRenames renames;
  renames.add("messages[1]", "input[0]");
  renames.add("messages[1].content", "input[0].output");
  const Status status = renames.apply(invalid_argument(
      "messages[1].content[2].text must be a string", "messages[1].content[2].text"));
  BOOST_TEST(status.param() == "input[0].output[2].text");
  BOOST_TEST(status.message() == "input[0].output[2].text must be a string");
  BOOST_TEST(renames.apply(invalid_argument("x", "messages[1].role")).param() == "input[0].role");
}

BOOST_AUTO_TEST_CASE(a_path_that_only_begins_alike_is_another_field) {
  PathRenames renames;
  renames.add("messages[1]", "input[0]");
  renames.add("stop", "stop_sequences");
  for (const char* param : {"messages[10]", "stop_token_ids", "temperature", ""})
    BOOST_TEST(renames.apply(invalid_argument("no", param)).param() == param);
}

}  // namespace
}  // namespace troupe
