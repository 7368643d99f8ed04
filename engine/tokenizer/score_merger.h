#pragma once
// Byte-pair encoding as SentencePiece does it (Kudo and Richardson 2018): the vocabulary alone says
// what may be merged, and the token of the best score is made first. There are no words; a text is
// merged as one.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "engine/tokenizer/string_index.h"

namespace troupe {

class ScoreMerger final {
 public:
  struct Piece {
    std::string_view text;  // not empty; stays where it is while the merger lives
    TokenId id = 0;
    float score = 0.0F;  // not NaN
  };
  // Of two equal texts the later one counts.
  explicit ScoreMerger(const std::vector<Piece>& pieces);

  // A part of the text that became a token, or a character that is none.
  struct Part {
    std::string_view text;
    TokenId id = kNoToken;
  };
  // Appends the parts of `text`, which must be UTF-8 and shorter than 2 GiB, in order: always the
  // neighbours that make the token of the best score are joined, the leftmost of several. O(n log
  // n).
  void split(std::string_view text, std::vector<Part>& parts) const;

 private:
  struct Symbol {
    uint32_t begin, size;    // of the text; size 0: swallowed by its left neighbour
    int32_t previous, next;  // -1: none
  };
  struct Candidate {
    uint64_t due;   // rank << 32 | position of the left symbol: the least is due first
    uint32_t size;  // of both symbols: another size now means that one of them has changed
    bool operator>(const Candidate& other) const { return due > other.due; }
  };
  struct Scratch {
    std::string_view text;
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
  };

  [[nodiscard]] bool append_candidate(int32_t left_position, Scratch& scratch) const;
  void merge_all(Scratch& scratch) const;

  StringIndex index_;
  std::vector<uint32_t> ranks_;  // by id; equal scores have equal ranks, better ones lower
  size_t longest_ = 0;           // bytes of a piece
};

}  // namespace troupe
