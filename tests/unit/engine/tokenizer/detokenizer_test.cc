#include "engine/tokenizer/detokenizer.h"

#include <boost/test/unit_test.hpp>
#include <random>
#include <string>
#include <vector>

#include "engine/tokenizer/byte_alphabet.h"
#include "engine/tokenizer/utf8.h"

namespace troupe {
namespace {

// One token for each byte and some longer ones: any bytes, grouped in any way, can be spelled.
struct ByteVocabulary {
  ByteVocabulary() {
    const ByteAlphabet alphabet;
    std::vector<std::string> strings;
    for (int byte = 0; byte < 256; ++byte)
      strings.push_back(alphabet.spelling(static_cast<uint8_t>(byte)));
    for (const std::string_view bytes : {"\xA6\xF0\x9F", "\xE4\xBD\xA0", "\x82\xAC!", "\xE2\x82"}) {
      std::string spelled;
      for (const char byte : bytes) spelled += alphabet.spelling(static_cast<uint8_t>(byte));
      strings.push_back(spelled);
    }
    strings.emplace_back("<|end|>");
    strings.emplace_back("<think>");
    TokenizerSpec spec;
    spec.model = "gpt2";
    spec.pre = "gpt-2";
    spec.tokens.assign(strings.begin(), strings.end());
    spec.types.assign(strings.size(), TokenType::kNormal);
    spec.types[kEnd] = TokenType::kControl;
    spec.types[kThink] = TokenType::kUserDefined;
    tokenizer = std::move(Tokenizer::create(spec)).value();
  }
  static constexpr TokenId kEnd = 260, kThink = 261;

  [[nodiscard]] std::vector<std::string> pieces(const std::vector<TokenId>& ids,
                                                SpecialTokens special) const {
    IncrementalDetokenizer detokenizer(*tokenizer, special);
    std::vector<std::string> out;
    for (const TokenId id : ids) out.push_back(detokenizer.append(id));
    out.push_back(detokenizer.flush());
    return out;
  }
  std::unique_ptr<Tokenizer> tokenizer;
};

using Pieces = std::vector<std::string>;
const std::string kBad(kReplacementCharacter);

}  // namespace

BOOST_FIXTURE_TEST_SUITE(detokenizer, ByteVocabulary)

BOOST_AUTO_TEST_CASE(a_character_appears_only_when_it_is_whole) {
  BOOST_TEST(pieces({0xF0, 0x9F, 0xA6, 0xA6, 'x'}, SpecialTokens::kSkip) ==
             (Pieces{"", "", "", "🦦", "x", ""}));
  BOOST_TEST(pieces({0xE2, 258}, SpecialTokens::kSkip) == (Pieces{"", "€!", ""}));
  BOOST_TEST(pieces({0xF0, 0x9F, 0xA6, 256, 0xA6, 0xA6}, SpecialTokens::kSkip) ==
             (Pieces{"", "", "", "🦦", "", "🦦", ""}));
}

BOOST_AUTO_TEST_CASE(an_incomplete_end_becomes_one_replacement_character) {
  BOOST_TEST(pieces({'a', 0xF0, 0x9F}, SpecialTokens::kSkip) == (Pieces{"a", "", "", kBad}));
}

BOOST_AUTO_TEST_CASE(a_prompts_torn_character_leaks_nothing) {
  // The prompt ended with the first two bytes of an otter; its last two begin the output.
  BOOST_TEST(pieces({0xA6, 0xA6, '!'}, SpecialTokens::kSkip) == (Pieces{kBad, kBad, "!", ""}));
}

BOOST_AUTO_TEST_CASE(invalid_bytes_are_replaced_as_soon_as_they_are_certain) {
  BOOST_TEST(pieces({0xE2, 'x'}, SpecialTokens::kSkip) == (Pieces{"", kBad + "x", ""}));
  BOOST_TEST(pieces({0xE2, 0xE2, 258}, SpecialTokens::kSkip) == (Pieces{"", kBad, "€!", ""}));
  BOOST_TEST(pieces({0xFF}, SpecialTokens::kSkip) == (Pieces{kBad, ""}));
  BOOST_TEST(pieces({0xED, 0xA0, 0x80}, SpecialTokens::kSkip) ==
             (Pieces{"", kBad + kBad, kBad, ""}));
}

BOOST_AUTO_TEST_CASE(a_real_replacement_character_passes) {
  BOOST_TEST(pieces({0xEF, 0xBF, 0xBD}, SpecialTokens::kSkip) == (Pieces{"", "", kBad, ""}));
}

BOOST_AUTO_TEST_CASE(special_tokens_are_skipped_or_spelled) {
  BOOST_TEST(pieces({'a', kEnd, kThink}, SpecialTokens::kSkip) == (Pieces{"a", "", "<think>", ""}));
  BOOST_TEST(pieces({'a', kEnd}, SpecialTokens::kSpell) == (Pieces{"a", "<|end|>", ""}));
  // A hidden token inside a character does not tear it.
  BOOST_TEST(pieces({0xE2, kEnd, 258}, SpecialTokens::kSkip) == (Pieces{"", "", "€!", ""}));
}

BOOST_AUTO_TEST_CASE(flush_makes_ready_for_the_next_sequence) {
  IncrementalDetokenizer detokenizer(*tokenizer, SpecialTokens::kSkip);
  BOOST_TEST(detokenizer.append(0xF0).empty());
  BOOST_TEST(detokenizer.flush() == kBad);
  BOOST_TEST(detokenizer.flush().empty());
  BOOST_TEST(detokenizer.append('a') == "a");
}

BOOST_AUTO_TEST_CASE(any_bytes_in_any_grouping_give_the_text_of_the_whole) {
  // Bytes that begin, continue and break characters, far more often than chance would.
  const std::vector<TokenId> menu = {0x80, 0xBF, 0x9F, 0xA0, 0xC2, 0xC1,   0xE0, 0xE2, 0xED, 0xEF,
                                     0xF0, 0xF4, 0xF5, 0x90, 'a',  kThink, 256,  257,  258,  259};
  std::mt19937_64 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<TokenId> ids(1 + random() % 10);
    for (TokenId& id : ids) id = menu[random() % menu.size()];
    std::string joined;
    for (const std::string& piece : pieces(ids, SpecialTokens::kSpell)) {
      BOOST_REQUIRE(!find_invalid_utf8(piece));
      joined += piece;
    }
    BOOST_REQUIRE_EQUAL(joined, to_valid_utf8(tokenizer->decode(ids).value()));
  }
}

BOOST_AUTO_TEST_CASE(replacement_follows_the_practice_of_unicode) {
  // Table 3-8 of The Unicode Standard and the examples that follow it in section 3.9.
  BOOST_TEST(to_valid_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41") ==
             kBad + kBad + kBad + kBad + kBad + kBad + kBad + kBad + "A");
  BOOST_TEST(to_valid_utf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42") ==
             kBad + kBad + kBad + kBad + kBad + "A" + kBad + kBad + "B");
  BOOST_TEST(to_valid_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41") ==
             kBad + kBad + kBad + kBad + "A");
  BOOST_TEST(to_valid_utf8("\xE1\x80") == kBad);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
