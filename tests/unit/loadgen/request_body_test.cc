#include "loadgen/request_body.h"

#include <boost/test/unit_test.hpp>

namespace troupe::loadgen {
namespace {

using Json = nlohmann::json;

BOOST_AUTO_TEST_SUITE(request_body_of_a_load)

BOOST_AUTO_TEST_CASE(both_endpoints_get_what_was_said) {
  RequestShape shape;
  shape.model = "m";
  shape.extra = {{"top_p", 0.5}, {"temperature", 1.0}};
  const std::vector<Message> said = {{"user", "a"}, {"assistant", "b"}, {"user", "c\xff"}};
  const Json chat = Json::parse(request_body(shape, said, 9));
  BOOST_TEST(chat["messages"].size() == 3U);
  BOOST_TEST(chat["messages"][1]["role"] == "assistant");
  BOOST_TEST(chat["max_completion_tokens"] == 9);
  BOOST_TEST(chat["ignore_eos"] == true);
  BOOST_TEST(chat["temperature"] == 1.0);
  BOOST_TEST(chat["stream_options"]["include_usage"] == true);
  shape.endpoint = Endpoint::kCompletions;
  shape.ignore_eos = false;
  const Json text = Json::parse(request_body(shape, said, 9));
  BOOST_TEST(text["prompt"] == "a\nb\nc\xef\xbf\xbd");
  BOOST_TEST(text["max_tokens"] == 9);
  BOOST_TEST(!text.contains("ignore_eos"));
  BOOST_TEST(!text.contains("messages"));
}

BOOST_AUTO_TEST_CASE(extra_fields_are_an_object_that_leaves_the_load_alone) {
  BOOST_TEST(parse_extra_body("")->empty());
  BOOST_TEST(parse_extra_body(R"({"top_p":1})")->size() == 1U);
  for (const char* bad : {"[]", "{", "7", R"({"stream":false})", R"({"messages":[]})"}) {
    BOOST_TEST(!parse_extra_body(bad).ok(), bad);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe::loadgen
