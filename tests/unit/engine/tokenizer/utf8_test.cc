#include "engine/tokenizer/utf8.h"

#include <boost/test/unit_test.hpp>
#include <string>

namespace troupe {
namespace {

std::string encoded(uint32_t code_point) {
  const auto byte = [](uint32_t value) { return static_cast<char>(value); };
  const auto tail = [&](uint32_t shift) { return byte(0x80 | (code_point >> shift & 0x3F)); };
  if (code_point < 0x80) return {byte(code_point)};
  if (code_point < 0x800) return {byte(0xC0 | code_point >> 6), tail(0)};
  if (code_point < 0x10000) return {byte(0xE0 | code_point >> 12), tail(6), tail(0)};
  return {byte(0xF0 | code_point >> 18), tail(12), tail(6), tail(0)};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(utf8)

BOOST_AUTO_TEST_CASE(every_code_point_but_surrogates_is_a_character) {
  for (uint32_t code_point = 0; code_point <= 0x110100; ++code_point) {
    const std::string text = encoded(code_point);
    const bool valid = code_point <= 0x10FFFF && (code_point < 0xD800 || code_point > 0xDFFF);
    if (!valid) {
      BOOST_REQUIRE(utf8_prefix(text) == (Utf8Prefix{Utf8Kind::kInvalid, 1}));
      continue;
    }
    BOOST_REQUIRE(utf8_prefix(text) == (Utf8Prefix{Utf8Kind::kCharacter, text.size()}));
    for (size_t size = 1; size < text.size(); ++size)
      BOOST_REQUIRE(utf8_prefix(text.substr(0, size)) == (Utf8Prefix{Utf8Kind::kIncomplete, size}));
  }
}

BOOST_AUTO_TEST_CASE(overlong_forms_are_invalid_at_their_first_byte) {
  for (const std::string_view bytes : {"\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF"})
    BOOST_CHECK(utf8_prefix(bytes) == (Utf8Prefix{Utf8Kind::kInvalid, 1}));
}

BOOST_AUTO_TEST_CASE(the_first_fault_is_found_wherever_it_is) {
  BOOST_CHECK(!find_invalid_utf8(""));
  for (size_t before = 0; before < 40; ++before) {
    const std::string start(before, 'a');
    BOOST_TEST(find_invalid_utf8(start + "\xFF").value() == before);
    BOOST_TEST(find_invalid_utf8(start + "\x80 and more text after it").value() == before);
    BOOST_TEST(find_invalid_utf8(start + "\xE2\x82").value() == before);
    BOOST_CHECK(!find_invalid_utf8(start + "€ and more text after it"));
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
