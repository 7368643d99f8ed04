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

  // Neighbours `left`, `right` become `merged`; of two merges the one of lower rank happens first.
  // When the pair is there already, the first entry stays (as in llama.cpp).
  void add(TokenId left, TokenId right, uint32_t rank, TokenId merged);

  // Memory that one thread reuses from word to word.
  struct Scratch {
    struct Symbol {
      TokenId id;
      int32_t previous, next;  // -1: none
    };
    struct Candidate {
      uint32_t rank;
      int32_t position;     // of the left symbol
      TokenId left, right;  // as they were when this was found: a stale candidate is told by them
      TokenId merged;
    };
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
  };

  // Replaces the tokens of a word (one per byte at first) by those that remain when no pair can be
  // merged: always the pair of lowest rank, the leftmost of several. O(n log n).
  void apply(std::vector<TokenId>& word, Scratch& scratch) const;

 private:
  struct Entry {
    uint64_t pair = kFree;
    uint32_t rank = 0;
    TokenId merged = 0;
  };
  static constexpr uint64_t kFree = ~uint64_t{0};  // no pair: ids are not negative

  [[nodiscard]] static uint64_t pair_of(TokenId left, TokenId right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  [[nodiscard]] size_t position_of(uint64_t pair) const;
  void push_candidate(int32_t left_position, Scratch& scratch) const;

  std::vector<Entry> entries_;
  size_t used_ = 0;
};

}  // namespace troupe
