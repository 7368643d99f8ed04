#include "engine/tokenizer/score_merger.h"

#include <boost/test/unit_test.hpp>
#include <random>
#include <string>

namespace troupe {
namespace {

using Pieces = std::vector<ScoreMerger::Piece>;

std::string joined(const ScoreMerger& merger, std::string_view text) {
  std::vector<ScoreMerger::Part> parts;
  merger.split(text, parts);
  std::string out;
  for (const ScoreMerger::Part& part : parts)
    out += std::string(part.text) + ":" + std::to_string(part.id) + " ";
  return out;
}

// The definition, in quadratic time.
std::string by_definition(const Pieces& pieces, std::string_view text) {
  std::vector<std::string> symbols;
  for (const char c : text) {
    if (!symbols.empty() && (static_cast<uint8_t>(c) & 0xC0U) == 0x80U)
      symbols.back() += c;
    else
      symbols.emplace_back(1, c);
  }
  const auto find = [&](const std::string& spelling) {
    const ScoreMerger::Piece* found = nullptr;
    for (const auto& piece : pieces)
      if (piece.text == spelling) found = &piece;
    return found;
  };
  for (;;) {
    const ScoreMerger::Piece* best = nullptr;
    size_t at = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto* piece = find(symbols[i] + symbols[i + 1]);
      if (piece != nullptr && (best == nullptr || piece->score > best->score)) {
        best = piece;
        at = i;
      }
    }
    if (best == nullptr) break;
    symbols[at] += symbols[at + 1];
    symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(at) + 1);
  }
  std::string out;
  for (const std::string& symbol : symbols) {
    const auto* piece = find(symbol);
    out += symbol + ":" + std::to_string(piece == nullptr ? -1 : piece->id) + " ";
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(score_merger)

BOOST_AUTO_TEST_CASE(the_best_score_is_merged_first_and_of_equal_ones_the_leftmost) {
  const ScoreMerger merger(
      {{"a", 0, -9}, {"b", 1, -9}, {"c", 2, -9}, {"ab", 3, -2}, {"bc", 4, -1}, {"aa", 5, -3}});
  BOOST_TEST(joined(merger, "abc") == "a:0 bc:4 ");
  BOOST_TEST(joined(merger, "aaa") == "aa:5 a:0 ");
  BOOST_TEST(joined(merger, "") == "");
}

BOOST_AUTO_TEST_CASE(a_character_without_a_token_stays_whole) {
  const ScoreMerger merger({{"a", 0, 0}});
  BOOST_TEST(joined(merger, "a\u00e9\U0001f600a") == "a:0 \u00e9:-1 \U0001f600:-1 a:0 ");
}

BOOST_AUTO_TEST_CASE(a_merge_needs_its_result_alone_in_the_vocabulary) {
  // "abc" is reached from "ab" although "c" is no token; "abcd" is not reached at all.
  const ScoreMerger merger({{"ab", 0, -1}, {"abc", 1, -2}, {"bcd", 2, -3}});
  BOOST_TEST(joined(merger, "abcd") == "abc:1 d:-1 ");
}

BOOST_AUTO_TEST_CASE(random_texts_give_what_the_definition_gives) {
  std::mt19937 engine(3);
  const std::vector<std::string> letters = {"a", "b", "c", " ", "\u00e9"};
  const auto random_text = [&](size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i) text += letters[engine() % letters.size()];
    return text;
  };
  for (int round = 0; round < 60; ++round) {
    std::vector<std::string> spellings;
    for (int i = 0; i < 40; ++i) spellings.push_back(random_text(1 + engine() % 5));
    Pieces pieces;
    for (const std::string& spelling : spellings)  // few scores, so that many are equal
      pieces.push_back({spelling, static_cast<TokenId>(pieces.size()), -float(engine() % 6)});
    // Of equal spellings the later one counts: then its score does.
    const ScoreMerger merger(pieces);
    for (int text = 0; text < 10; ++text) {
      const std::string sample = random_text(engine() % 40);
      BOOST_TEST(joined(merger, sample) == by_definition(pieces, sample), sample);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
