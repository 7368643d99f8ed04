#pragma once
// How many tokens of prompts a step computes beside those that decode: as many as keep it to a
// wanted time, so that the gaps of running streams stay short, and a prompt that is short need not
// wait for the end of a long one. More rows than kStepTokensLeast hardly compute faster each, so
// that smaller steps cost little.

#include <cstdint>

#include "base/clock.h"

namespace troupe {

class StepPace final {
 public:
  // `wanted`: zero or less for no wish, then every step may have `most` tokens.
  StepPace(Duration wanted, uint32_t most) : wanted_(wanted), most_(most) {}

  struct Queue {
    uint64_t tokens = 0;   // of prompts, that could be computed now …
    uint32_t prompts = 0;  // … and of how many of them
  };
  // Prompt tokens of the next step, at most, while `rows` others decode in it. What the wanted time
  // allows, or kTimesAlone that where nobody decodes and no other prompt waits; but
  //   - at least kStepTokensLeast, since fewer are computed no faster,
  //   - at least tokens / kStepsOfQueue: the more wait, the longer those who decode are held up.
  // And never more than `most` with `rows`.
  [[nodiscard]] uint32_t prompt_tokens(uint32_t rows, const Queue& queue) const;

  // A step of so many tokens, prompts and others, has taken so long.
  void on_step(uint32_t tokens, Duration took);

 private:
  const Duration wanted_;
  const uint32_t most_;
  double token_seconds_ = 0.0;  // of large steps, lately; 0: none has been seen
};

}  // namespace troupe
