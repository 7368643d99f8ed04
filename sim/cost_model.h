#pragma once
// How long a device takes for a step: a line through what was measured.

#include "base/clock.h"
#include "engine/step.h"

namespace troupe::sim {

// seconds = step + token · tokens + Σ over slices of tokens · (context before them) · context,
// where the last factor differs between a chunk of a prompt, whose tokens share what they read, and
// a token that is fed back, which reads all KV of its sequence alone.
struct CostModel {
  double step_seconds = 0.0;
  double token_seconds = 0.0;
  double prompt_context_seconds = 0.0;  // per token of a chunk and token before it
  double decode_context_seconds = 0.0;  // per token before the one that is fed back

  [[nodiscard]] Duration of(const StepPlan& plan) const;
  // Of a request that has the device for itself.
  [[nodiscard]] Duration of_request(uint32_t prompt_tokens, uint32_t output_tokens) const;
};

// The CPU engine with SmolLM2-135M on two cores: through what docs/benchmarks.md measured there.
[[nodiscard]] CostModel cpu_cost();
// A model of eight billion 16-bit parameters on an accelerator of 3.35 TB/s and 990 TFLOP/s (dense,
// 16 bits), at 70 % of the bandwidth and 50 % of the arithmetic: not measured, but computed from
// these.
[[nodiscard]] CostModel gpu_cost();

}  // namespace troupe::sim
