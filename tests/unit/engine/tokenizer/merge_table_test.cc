#include "engine/tokenizer/merge_table.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace troupe {
namespace {

using Merges = std::map<std::pair<TokenId, TokenId>, std::pair<uint32_t, TokenId>>;

// The definition, word for word: as long as there is one, merge the pair of lowest rank, leftmost.
std::vector<TokenId> merged_naively(const Merges& merges, std::vector<TokenId> word) {
  while (true) {
    auto best = merges.end();
    size_t at = 0;
    for (size_t i = 0; i + 1 < word.size(); ++i) {
      const auto found = merges.find({word[i], word[i + 1]});
      if (found == merges.end()) continue;
      if (best == merges.end() || found->second.first < best->second.first) best = found, at = i;
    }
    if (best == merges.end()) return word;
    word[at] = best->second.second;
    word.erase(word.begin() + static_cast<ptrdiff_t>(at) + 1);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(merge_table)

BOOST_AUTO_TEST_CASE(random_tables_and_words_merge_as_the_definition_says) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 300; ++round) {
    // Few tokens and many merges: chains, overlaps and repeats happen all the time.
    const auto tokens = static_cast<TokenId>(2 + random() % 6);
    Merges merges;
    const size_t count = 1 + random() % 20;
    MergeTable table(count);
    for (uint32_t rank = 0; rank < count; ++rank) {
      const auto left = static_cast<TokenId>(random() % static_cast<uint64_t>(tokens + rank));
      const auto right = static_cast<TokenId>(random() % static_cast<uint64_t>(tokens + rank));
      const auto merged = tokens + static_cast<TokenId>(rank);
      table.add(left, right, merged);
      merges.insert({{left, right}, {rank, merged}});  // keeps the first, too
    }
    MergeTable::Scratch scratch;
    for (int i = 0; i < 20; ++i) {
      std::vector<TokenId> word(random() % 40);
      for (TokenId& id : word) id = static_cast<TokenId>(random() % static_cast<uint64_t>(tokens));
      const auto wanted = merged_naively(merges, word);
      table.apply(word, scratch);
      BOOST_TEST(word == wanted);
    }
  }
}

BOOST_AUTO_TEST_CASE(equal_pairs_are_merged_from_the_left) {
  MergeTable table(1);
  table.add(1, 1, 2);
  MergeTable::Scratch scratch;
  std::vector<TokenId> word = {1, 1, 1};
  table.apply(word, scratch);
  BOOST_TEST(word == (std::vector<TokenId>{2, 1}));
  word = {};
  table.apply(word, scratch);
  BOOST_TEST(word.empty());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
