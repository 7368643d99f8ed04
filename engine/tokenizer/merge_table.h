#pragma once
// The merges of byte-pair encoding and the algorithm that applies them to a word.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace troupe {

class MergeTable final {
 public:
  // For at most `count` merges.
  explicit MergeTable(size_t count);

  // Neighbours `left`, `right` become `merged`. Merges that were added earlier happen first. When
  // the pair is there already, the first entry stays (as in llama.cpp).
  void add(TokenId left, TokenId right, TokenId merged);

  // Memory that one thread reuses from word to word.
  struct Scratch {
    struct Symbol {
      TokenId id;
      int32_t previous, next;  // -1: none
    };
    std::vector<Symbol> symbols;
    // Merges that may be possible, as rank << 32 | position of the left symbol: the least is due
    // first.
    std::vector<uint64_t> heap;
  };

  // Replaces the tokens of a word (one per byte at first) by those that remain when no pair can be
  // merged: always the pair of lowest rank, the leftmost of several. O(n log n).
  void apply(std::vector<TokenId>& word, Scratch& scratch) const;

 private:
  struct Rule {
    TokenId left = 0, right = 0, merged = 0;
  };
  struct Entry {
    uint64_t pair = kFree;
    uint32_t rank = 0;
  };
  static constexpr uint64_t kFree = ~uint64_t{0};  // no pair: ids are not negative

  [[nodiscard]] static uint64_t pair_of(TokenId left, TokenId right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  [[nodiscard]] size_t position_of(uint64_t pair) const;
  // Appends the merge of the symbols at `left_position` and after it, if there is one.
  bool append_candidate(int32_t left_position, Scratch& scratch) const;
  void push_candidate(int32_t left_position, Scratch& scratch) const;
  void merge_all(Scratch& scratch) const;

  std::vector<Entry> entries_;  // by pair, hashed
  std::vector<Rule> rules_;     // by rank
};

}  // namespace troupe
