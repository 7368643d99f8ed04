#pragma once
// What a client may ask of the sampler. Value type; already validated where it leaves the gateway.

#include <cstdint>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "engine/grammar/grammar_spec.h"

namespace troupe {

// One vector for the whole prompt, from its rows behind the last norm (what the logits are made
// of).
enum class Pooling : uint8_t {
  kNone,
  kMean,  // of all rows
  kLast,  // the last token's row
};

struct SamplingParams {
  float temperature = 1.0F;         // [0, 2]; 0 (and anything below 1e-5) is greedy
  int32_t top_k = 0;                // 0: off
  float top_p = 1.0F;               // (0, 1]
  float min_p = 0.0F;               // [0, 1]; relative to the most probable token
  float repetition_penalty = 1.0F;  // > 0; over prompt and output, as in CTRL (Keskar et al. 2019)
  float presence_penalty = 0.0F;    // [-2, 2]; over output only
  float frequency_penalty = 0.0F;   // [-2, 2]; over output only
  std::vector<std::pair<TokenId, float>> logit_bias;  // [-100, 100] each; sorted by token
  // Other tokens are impossible; empty: all are possible. Sorted, each token once.
  std::vector<TokenId> allowed_tokens = {};
  // None of these runs of tokens comes up in the output: where all but the last stand, the last is
  // impossible. None is empty.
  std::vector<std::vector<TokenId>> bad_words = {};
  uint64_t seed = 0;  // of this sequence: already derived from the request's seed and the choice

  std::vector<TokenId> stop_token_ids;  // sampled one of these: finish with `stop`
  bool ignore_eos = false;              // end tokens of the model do not finish the sequence
  uint32_t min_tokens = 0;              // no end or stop token before this many output tokens
  uint32_t max_tokens = 0;  // output tokens at most; ≥ 1 unless only the prompt is scored or pooled

  // -1: no log-probabilities; k ≥ 0: that of the chosen token and of the k most probable ones.
  // They are the model's own: of the raw logits, before temperature, penalties, bias and filters.
  int32_t logprobs = -1;
  // As `logprobs`, for each token of the prompt from index `score_from` on (`echo` with
  // `logprobs`). The first token has none.
  int32_t prompt_logprobs = -1;
  uint32_t score_from = 1;  // ≥ 1; what stands before may come from the prefix cache

  GrammarSpec grammar;  // which texts the output may be
  // Other than kNone: the prompt's vector is wanted and nothing else; max_tokens is 0.
  Pooling pooling = Pooling::kNone;

  bool operator==(const SamplingParams&) const = default;
};

// Whether the sampler must see the tokens so far.
[[nodiscard]] inline bool needs_history(const SamplingParams& params) {
  return params.repetition_penalty != 1.0F || params.presence_penalty != 0.0F ||
         params.frequency_penalty != 0.0F || !params.bad_words.empty();
}

struct TokenLogprob {
  TokenId token = 0;
  float logprob = 0.0F;
  bool operator==(const TokenLogprob&) const = default;
};

// One token and, where asked for, its log-probability among the alternatives.
struct SampledToken {
  TokenId token = 0;
  float logprob = 0.0F;           // meaningful when logprobs ≥ 0
  std::vector<TokenLogprob> top;  // most probable first; ties by lower token id
  bool operator==(const SampledToken&) const = default;
};

}  // namespace troupe
