#include "actors/gateway/text/escape.h"

#include <boost/test/unit_test.hpp>

namespace troupe {
namespace {

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

BOOST_AUTO_TEST_CASE(json_strings_escape_what_json_forbids_and_nothing_else) {
  BOOST_TEST(json_string("") == "\"\"");
  BOOST_TEST(json_string("a\"b\\c/d") == "\"a\\\"b\\\\c/d\"");
  BOOST_TEST(json_string("\n\r\t\x01\x1f\x7f") == "\"\\n\\r\\t\\u0001\\u001f\x7f\"");
  BOOST_TEST(json_string(std::string_view("\0x", 2)) == "\"\\u0000x\"");
  BOOST_TEST(json_string("\xF0\x9F\xA6\xA6") == "\"\xF0\x9F\xA6\xA6\"");
}

BOOST_AUTO_TEST_CASE(excerpts_escape_foreign_bytes_and_stay_within_their_limit) {
  BOOST_TEST(printable_excerpt("plain", 10) == "plain");
  BOOST_TEST(printable_excerpt("\xC4\xE3", 10) == "\\xc4\\xe3");
  BOOST_TEST(printable_excerpt("a\nb", 10) == "a\\x0ab");
  BOOST_TEST(printable_excerpt("exactly10!", 10) == "exactly10!");
  BOOST_TEST(printable_excerpt("longer than ten", 10) == "longer ...");
  // No character is cut in two.
  BOOST_TEST(printable_excerpt("\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9", 7) == "\xC3\xA9\xC3\xA9...");
}

BOOST_AUTO_TEST_CASE(characters_are_counted_not_bytes) {
  BOOST_TEST(count_code_points("") == 0U);
  BOOST_TEST(count_code_points("a\xC3\xA9\xF0\x9F\xA6\xA6") == 3U);
}

}  // namespace
}  // namespace troupe
