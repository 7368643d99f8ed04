#pragma once
// A pretended model for simulations. KV of a token is a number that depends on all tokens before
// it, and what is sampled depends on all KV that is read: so a block that is lost, stale, in the
// wrong place or overwritten changes the answer, as it would change a real model's.

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "engine/finish_reason.h"
#include "engine/sample/sampling_params.h"

namespace troupe::sim {

// What is read of the KV before a token. kAll is what models do, and catches every wrong block; its
// time grows with the square of the length. kLast reads the latest token's alone, which still
// depends on all before it when it was computed: for long traces.
enum class Reads : uint8_t { kAll, kLast };

struct SimModel {
  uint32_t layers = 2;
  uint32_t vocabulary = 40;  // small: end tokens come up by themselves
  TokenId end_token = 0;
  Reads reads = Reads::kAll;
  // Layers that see the latest `window` tokens only: all but each global_every-th. 0: none. With
  // Reads::kAll alone.
  uint32_t window = 0;
  uint32_t global_every = 2;

  [[nodiscard]] bool windowed(uint32_t layer) const {
    return window != 0 && (layer + 1) % global_every != 0;
  }
  [[nodiscard]] uint32_t windowed_layers() const {
    return window == 0 ? 0 : layers - layers / global_every;
  }

  // KV of one token in one layer, from that of the token before (0 for the first).
  [[nodiscard]] static uint64_t kv(uint32_t layer, uint64_t before, TokenId token,
                                   uint32_t position);
  // What that KV adds to the sum from which the next token comes.
  [[nodiscard]] static uint64_t weigh(uint64_t kv, uint32_t layer, uint32_t position);
  // The token after a prefix whose KV sums up to that.
  [[nodiscard]] SampledToken sample(uint64_t sum, const SamplingParams& params,
                                    uint32_t outputs) const;
  // A token's score after such a prefix.
  [[nodiscard]] SampledToken score(uint64_t sum, TokenId token) const;
  // What such a prefix's last token adds to its prompt's vector: inexact numbers, so that another
  // order of additions shows.
  [[nodiscard]] static double row(uint64_t sum);
};

struct Answer {
  std::vector<SampledToken> tokens;
  std::vector<SampledToken> prompt_scores;  // of prompt tokens 1, 2, …, where asked for
  std::vector<float> embedding;             // where asked for
  FinishReason reason = FinishReason::kStop;
  TokenId stop_token = -1;
};

// The whole answer, computed alone, at once and without blocks: what a single worker says.
[[nodiscard]] Answer answer_of(const SimModel& model, const std::vector<TokenId>& prompt,
                               const SamplingParams& params, uint32_t context_tokens);

}  // namespace troupe::sim
