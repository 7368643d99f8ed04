#pragma once
// Guesses how a sequence goes on without a second model: as it went on the last time that its
// latest tokens stood in it. Answers that quote their prompt (code, JSON, summaries) are guessed
// well, and the guess costs microseconds. After "prompt lookup decoding" (Saxena 2023).

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace troupe {

// Tokens that must agree before a guess is made.
inline constexpr size_t kDraftMatchTokens = 3;

// The tokens of one sequence, prompt and output, with the latest place of every run of
// kDraftMatchTokens of them. Memory: 12 to 20 bytes a token.
class NgramDrafter final {
 public:
  // Amortised O(1).
  void append(TokenId token);
  void append(std::span<const TokenId> tokens);

  [[nodiscard]] size_t size() const { return tokens_.size(); }

  [[nodiscard]] bool has_draft() const { return !before_.empty() && before_.back() != 0; }
  // What followed the latest earlier place of the last kDraftMatchTokens tokens, at most `most`
  // tokens; empty where they are new. The place may overlap the end: a repeated phrase is guessed
  // to be repeated again.
  [[nodiscard]] std::vector<TokenId> draft(size_t most) const;

 private:
  // A place is the index after a run's last token; 0: none.
  [[nodiscard]] uint32_t& slot_of(size_t place);
  [[nodiscard]] bool same_run(size_t a, size_t b) const;
  [[nodiscard]] size_t hash_of(size_t place) const;
  void grow();

  std::vector<TokenId> tokens_;
  std::vector<uint32_t> table_;   // open addressing; its size is a power of two, at most half full
  std::vector<uint32_t> before_;  // per token: the place of its run before this one, or 0
  size_t used_ = 0;
};

}  // namespace troupe
