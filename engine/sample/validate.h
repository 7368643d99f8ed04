#pragma once
// The ranges of sampling parameters, checked where a request enters.

#include <cstdint>
#include <string_view>

#include "engine/sample/sampling_params.h"
#include "troupe/status.h"

namespace troupe {

struct SamplingLimits {
  uint32_t vocab_size = 0;
  uint32_t context_tokens = 0;  // most tokens of a sequence: max_tokens may not exceed it
  // How this API calls the number of alternatives: "top_logprobs" for chats, "logprobs" else.
  std::string_view logprobs_name = "logprobs";
};

inline constexpr int32_t kLogprobsMax = 20;
inline constexpr size_t kStopTokenIdsMax = 1024;
// Runs of tokens that the output must not have, and tokens of all of them: each is compared with
// the output at every token.
inline constexpr size_t kBadWordRunsMax = 512;
inline constexpr size_t kBadWordTokensMax = 4096;

// kInvalidArgument for the first field (in the struct's order) that breaks its rule; `param` is
// OpenAI's (or vLLM's) name of the field, and the message names the value and the range.
// logit_bias and allowed_tokens must be sorted by token, each token once.
[[nodiscard]] Status validate(const SamplingParams& params, const SamplingLimits& limits);

}  // namespace troupe
