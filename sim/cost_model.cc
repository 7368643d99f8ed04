#include "sim/cost_model.h"

namespace troupe::sim {
namespace {

Duration seconds(double value) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
}

}  // namespace

Duration CostModel::of(const StepPlan& plan) const {
  double tokens = 0.0, prompt_context = 0.0, decode_context = 0.0;
  for (const StepSlice& slice : plan.slices) {
    const auto count = static_cast<double>(slice.tokens.size());
    const double context = slice.position + 0.5 * count;
    tokens += count;
    (slice.tokens.size() == 1 ? decode_context : prompt_context) += count * context;
  }
  return seconds(step_seconds + token_seconds * tokens + prompt_context_seconds * prompt_context +
                 decode_context_seconds * decode_context);
}

Duration CostModel::of_request(uint32_t prompt_tokens, uint32_t output_tokens) const {
  const double prompt = prompt_tokens, output = output_tokens;
  return seconds(step_seconds * (1.0 + output) + token_seconds * (prompt + output) +
                 prompt_context_seconds * prompt * prompt / 2.0 +
                 decode_context_seconds * output * (prompt + output / 2.0));
}

// A prompt of 16 tokens takes 24.1 ms, one of them HTTP; 512 tokens take 535 ms; a token at a
// context of 192 takes 8.8 ms, of which its 23,040 bytes of KV per token, at 11 GB/s, are 0.4 ms.
// The share of attention in prompts is a guess that these leave open.
CostModel cpu_cost() {
  return {.step_seconds = 7.4e-3,
          .token_seconds = 0.98e-3,
          .prompt_context_seconds = 2.0e-7,
          .decode_context_seconds = 2.0e-6};
}

// Weights are read once a step: 16 GB / (0.7 · 3.35 TB/s). A token costs 16 GFLOP / (0.5 · 990
// TFLOP/s), and 0.5 MFLOP more for each token before it (32 layers of 4096: 4 · 32 · 4096). KV of a
// token is 128 KiB (32 layers, 8 heads of 128, K and V, 16 bits), read once by each that decodes.
CostModel gpu_cost() {
  return {.step_seconds = 6.8e-3,
          .token_seconds = 3.2e-5,
          .prompt_context_seconds = 1.06e-9,
          .decode_context_seconds = 5.6e-8};
}

}  // namespace troupe::sim
