#include "engine/model/printable.h"

#include <boost/test/unit_test.hpp>

using namespace troupe;

BOOST_AUTO_TEST_SUITE(printable_text)

BOOST_AUTO_TEST_CASE(text_of_any_language_stays_as_it_is) {
  BOOST_TEST(printable("plain, Grüße, 你好, 🙂", 100) == "plain, Grüße, 你好, 🙂");
}

BOOST_AUTO_TEST_CASE(control_and_direction_characters_are_escaped) {
  BOOST_TEST(printable("a\nb\tc\rd\\", 100) == "a\\nb\\tc\\rd\\\\");
  BOOST_TEST(printable("\x1b[31m", 100) == "\\u{1b}[31m");
  BOOST_TEST(printable(std::string_view("\0\x7f", 2), 100) == "\\u{0}\\u{7f}");
  BOOST_TEST(printable("\xc2\x9b", 100) == "\\u{9b}");
  BOOST_TEST(printable("\xe2\x80\xae", 100) == "\\u{202e}");
  BOOST_TEST(printable("\xef\xbb\xbf", 100) == "\\u{feff}");
}

BOOST_AUTO_TEST_CASE(bytes_that_are_not_utf8_are_escaped_one_by_one) {
  BOOST_TEST(printable("\xff", 100) == "\\xff");
  BOOST_TEST(printable("\xc0\xaf", 100) == "\\xc0\\xaf");                    // overlong
  BOOST_TEST(printable("\xe0\x80\xaf", 100) == "\\xe0\\x80\\xaf");           // overlong
  BOOST_TEST(printable("\xed\xa0\x80", 100) == "\\xed\\xa0\\x80");           // surrogate
  BOOST_TEST(printable("\xf4\x90\x80\x80", 100) == "\\xf4\\x90\\x80\\x80");  // above U+10FFFF
  BOOST_TEST(printable("a\xe4\xbd", 100) == "a\\xe4\\xbd");                  // cut short
}

BOOST_AUTO_TEST_CASE(long_text_is_cut_between_characters_and_says_its_length) {
  BOOST_TEST(printable("abcdef", 3) == "abc... (6 bytes)");
  BOOST_TEST(printable("abcdef", 6) == "abcdef");
  BOOST_TEST(printable("aé", 2) == "a... (3 bytes)");
  BOOST_TEST(quoted(std::string(100, 'k')) == "'" + std::string(80, 'k') + "... (100 bytes)'");
}

BOOST_AUTO_TEST_SUITE_END()
