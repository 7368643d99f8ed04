#pragma once
// What becomes of a row of logits: the score of a known token, a sampled one, or both. Keeps the
// grammar of a sequence in step with its output.

#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "engine/sample/sampler.h"
#include "engine/step.h"
#include "troupe/status.h"

namespace troupe {

// Holds scratch memory: one per thread. Rows of one slice come in their order, to whichever
// RowSampler; different slices share nothing.
class RowSampler final {
 public:
  // The clock must outlive it.
  RowSampler(uint32_t vocab, std::vector<TokenId> end_tokens, const Clock& clock)
      : vocab_(vocab), sampler_(vocab, std::move(end_tokens)), clock_(clock) {}

  struct Row {
    uint32_t index = 0;  // of its token in the slice
    bool sample = false;
    TokenId score = -1;  // >= 0: the token whose log-probability is asked for
  };
  // Adds what the row gives to the slice's result; a refusal is the slice's status, and then later
  // rows of it give nothing.
  void use(const StepSlice& slice, const Row& row, std::span<const float> logits, SliceResult& out);

 private:
  void sample(const StepSlice& slice, std::span<const float> logits, SliceResult& out);
  [[nodiscard]] Status fill_mask(const StepSlice& slice, uint32_t right);
  [[nodiscard]] std::span<const uint32_t> allowed_of(const StepSlice& slice) const;
  [[nodiscard]] Status follow(GrammarMatcher& grammar, TokenId token, Duration filling,
                              SliceResult& out) const;

  const uint32_t vocab_;
  Sampler sampler_;
  const Clock& clock_;
  std::vector<uint32_t> mask_;    // of the grammar of the row being sampled
  std::vector<TokenId> history_;  // of a slice, with its right guesses
};

}  // namespace troupe
