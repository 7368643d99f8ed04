#include "actors/gateway/openai/json_parse.h"

#include <boost/test/unit_test.hpp>
#include <string>

#include "actors/gateway/openai/request_limits.h"

namespace troupe {
namespace {

BOOST_AUTO_TEST_CASE(values_of_all_kinds_are_read_and_keys_keep_their_order) {
  const std::string text =
      R"({"z":[1,-2,2.5,true,false,null,"a\u00e9\ud83e\udda6"],"a":{"k":18446744073709551615}})";
  const auto parsed = parse_json(text);
  BOOST_REQUIRE(parsed.ok());
  BOOST_TEST(parsed->dump() ==
             "{\"z\":[1,-2,2.5,true,false,null,\"a\xC3\xA9\xF0\x9F\xA6\xA6\"],"
             "\"a\":{\"k\":18446744073709551615}}");
}

BOOST_AUTO_TEST_CASE(a_fault_names_the_place_where_it_stands) {
  const auto parsed = parse_json(R"({"messages":[{"role":"user"},{"content":"\ud800"}]})");
  BOOST_REQUIRE(!parsed.ok());
  BOOST_TEST(parsed.status().param() == "messages[1].content");
  BOOST_TEST(parsed.status().message().find("surrogate") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(nesting_is_allowed_up_to_its_limit_and_refused_beyond_it) {
  const auto nest = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  BOOST_TEST(parse_json(nest(kJsonDepthMax)).ok());
  BOOST_TEST(!parse_json(nest(kJsonDepthMax + 1)).ok());
  const auto deep = parse_json(std::string(100'000, '['));
  BOOST_REQUIRE(!deep.ok());
  BOOST_TEST(deep.status().message().find("64 deep") != std::string::npos);
  BOOST_TEST(deep.status().message().size() < kErrorBytesMax);
}

BOOST_AUTO_TEST_CASE(many_keys_are_read_in_good_time_and_doubles_are_refused) {
  std::string text = "{";
  for (int i = 0; i < 50'000; ++i) text += "\"" + std::to_string(i) + "\":1,";
  BOOST_TEST(parse_json(text + "\"x\":1}").ok());
  const auto doubled = parse_json(text + "\"7\":1}");
  BOOST_REQUIRE(!doubled.ok());
  BOOST_TEST(doubled.status().message().find("occurs twice") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(error_texts_escape_foreign_bytes_and_stay_short) {
  const std::string key(100'000, 'k');
  const auto parsed = parse_json("{\"" + key + "\":\xC4\xE3}");
  BOOST_REQUIRE(!parsed.ok());
  BOOST_TEST(parsed.status().message().size() < kErrorBytesMax);
  BOOST_TEST(parsed.status().param().size() < kErrorBytesMax);
  for (const char c : parsed.status().message()) BOOST_TEST((c >= 0x20 && c < 0x7F));
}

BOOST_AUTO_TEST_CASE(excerpts_of_values_are_short_whatever_the_value) {
  BOOST_TEST(json_excerpt("text") == "\"text\"");
  BOOST_TEST(json_excerpt(1.5) == "1.5");
  BOOST_TEST(json_excerpt(nullptr) == "null");
  BOOST_TEST(json_excerpt(nlohmann::ordered_json::array()) == "an empty array");
  BOOST_TEST(json_excerpt(std::string(1'000'000, 'x')).size() <= kExcerptBytesMax);
}

}  // namespace
}  // namespace troupe
