#include "engine/tokenizer/byte_alphabet.h"

#include <boost/test/unit_test.hpp>
#include <set>
#include <string>

namespace troupe {

BOOST_AUTO_TEST_SUITE(byte_alphabet)

BOOST_AUTO_TEST_CASE(each_byte_has_a_spelling_of_its_own_that_decodes_to_it) {
  const ByteAlphabet alphabet;
  std::set<std::string> spellings;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string& spelling = alphabet.spelling(static_cast<uint8_t>(byte));
    spellings.insert(spelling);
    std::string decoded;
    BOOST_TEST(alphabet.decode(spelling, decoded));
    BOOST_TEST(decoded == std::string(1, static_cast<char>(byte)));
  }
  BOOST_TEST(spellings.size() == 256U);
}

BOOST_AUTO_TEST_CASE(known_spellings_are_those_of_gpt2) {
  const ByteAlphabet alphabet;
  BOOST_TEST(alphabet.spelling(' ') == "Ġ");
  BOOST_TEST(alphabet.spelling('\n') == "Ċ");
  BOOST_TEST(alphabet.spelling('a') == "a");
  BOOST_TEST(alphabet.spelling(0) == "Ā");
  BOOST_TEST(alphabet.spelling(0xAD) == "Ń");
  BOOST_TEST(alphabet.spelling(0xC3) == "Ã");
}

BOOST_AUTO_TEST_CASE(text_outside_the_alphabet_is_told_apart_and_appends_nothing) {
  const ByteAlphabet alphabet;
  std::string bytes = "kept";
  for (const std::string_view foreign :
       {"a b", "Ġ\n", "ń", "中", "😀", "\xC4", "\xC4 ", "\xFF", "a\xC3"}) {
    BOOST_TEST(!alphabet.decode(foreign, bytes));
    BOOST_TEST(bytes == "kept");
  }
  BOOST_TEST(alphabet.decode("", bytes));
  BOOST_TEST(alphabet.decode("Ġw", bytes));
  BOOST_TEST(bytes == "kept w");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
