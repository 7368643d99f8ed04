#include "engine/grammar/code_points.h"

#include <boost/test/unit_test.hpp>

namespace troupe {
namespace {

using Ranges = std::vector<CodePointSet::Range>;

BOOST_AUTO_TEST_SUITE(code_points)

BOOST_AUTO_TEST_CASE(ranges_that_touch_become_one) {
  CodePointSet set{{'c', 'd'}, {'a', 'a'}, {'f', 'g'}};
  BOOST_TEST((set.ranges() == Ranges{{'a', 'a'}, {'c', 'd'}, {'f', 'g'}}));
  set.add('b', 'b');
  BOOST_TEST((set.ranges() == Ranges{{'a', 'd'}, {'f', 'g'}}));
  set.add('a', 'z');
  BOOST_TEST((set.ranges() == Ranges{{'a', 'z'}}));
}

BOOST_AUTO_TEST_CASE(nul_and_surrogates_are_in_no_set) {
  const CodePointSet all = CodePointSet().complement();
  BOOST_TEST((all.ranges() == Ranges{{1, 0xD7FF}, {0xE000, 0x10FFFF}}));
  const CodePointSet around{{0, 0x10FFFF}};
  BOOST_TEST((around == all));
  BOOST_TEST((CodePointSet{{0xD800, 0xDFFF}}.empty()));
}

BOOST_AUTO_TEST_CASE(a_complement_and_a_difference_share_nothing_with_what_they_lack) {
  const CodePointSet digits{{'0', '9'}};
  BOOST_TEST(!digits.complement().contains('5'));
  BOOST_TEST(digits.complement().contains(0x1F9A6));
  BOOST_TEST((digits.complement().complement() == digits));
  const CodePointSet rest = digits.without({{'3', '5'}});
  BOOST_TEST((rest.ranges() == Ranges{{'0', '2'}, {'6', '9'}}));
}

BOOST_AUTO_TEST_CASE(utf8_goes_there_and_back_and_ill_formed_text_is_noticed) {
  const std::string text = "aé€🦦";
  std::vector<uint32_t> code_points;
  BOOST_TEST(decode_utf8(text, code_points));
  std::string back;
  for (const uint32_t code_point : code_points) append_utf8(code_point, back);
  BOOST_TEST(back == text);
  for (const std::string bad :
       {"\xC3", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xFF", "\xE2\x82"}) {
    code_points.clear();
    BOOST_TEST(!decode_utf8(bad, code_points));
  }
}

BOOST_AUTO_TEST_CASE(a_prefix_ends_between_characters) {
  BOOST_TEST(utf8_prefix("abc", 3) == "abc");
  BOOST_TEST(utf8_prefix("abcd", 3) == "abc…");
  BOOST_TEST(utf8_prefix("a🦦b", 3) == "a…");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
