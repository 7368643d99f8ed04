#include "engine/sample/validate.h"

#include <cmath>
#include <cstdio>
#include <string>

namespace troupe {
namespace {

std::string printed(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", static_cast<double>(value));
  return text;
}

Status refuse(std::string_view name, const std::string& value, const std::string& rule) {
  return invalid_argument(std::string(name) + " is " + value + "; it must be " + rule,
                          std::string(name));
}

// A NaN is in no range.
Status check_range(std::string_view name, float value, float low, float high) {
  if (value >= low && value <= high) return ok_status();
  return refuse(name, printed(value), "from " + printed(low) + " to " + printed(high));
}

Status check_token(std::string_view name, TokenId token, uint32_t vocab_size) {
  if (token >= 0 && static_cast<uint32_t>(token) < vocab_size) return ok_status();
  return invalid_argument(std::string(name) + " names token " + std::to_string(token) +
                              "; token ids are 0 to " + std::to_string(vocab_size - 1),
                          std::string(name));
}

Status check_filters(const SamplingParams& params) {
  TROUPE_RETURN_IF_ERROR(check_range("temperature", params.temperature, 0.0F, 2.0F));
  if (params.top_k < -1)
    return refuse("top_k", std::to_string(params.top_k), "at least 1, or 0 or -1 for no limit");
  if (!(params.top_p > 0.0F && params.top_p <= 1.0F))
    return refuse("top_p", printed(params.top_p), "above 0 and at most 1");
  TROUPE_RETURN_IF_ERROR(check_range("min_p", params.min_p, 0.0F, 1.0F));
  if (!(params.repetition_penalty > 0.0F && std::isfinite(params.repetition_penalty)))
    return refuse("repetition_penalty", printed(params.repetition_penalty),
                  "above 0 and finite; 1 means none");
  TROUPE_RETURN_IF_ERROR(check_range("presence_penalty", params.presence_penalty, -2.0F, 2.0F));
  return check_range("frequency_penalty", params.frequency_penalty, -2.0F, 2.0F);
}

Status check_logit_bias(const SamplingParams& params, uint32_t vocab_size) {
  TokenId previous = -1;
  for (const auto& [token, bias] : params.logit_bias) {
    TROUPE_RETURN_IF_ERROR(check_token("logit_bias", token, vocab_size));
    if (!(bias >= -100.0F && bias <= 100.0F))
      return refuse("logit_bias", printed(bias) + " for token " + std::to_string(token),
                    "from -100 to 100");
    if (token <= previous)
      return invalid_argument("logit_bias names token " + std::to_string(token) +
                                  " twice or out of order; name each token once",
                              "logit_bias");
    previous = token;
  }
  return ok_status();
}

Status check_allowed_tokens(const SamplingParams& params, uint32_t vocab_size) {
  TokenId previous = -1;
  for (const TokenId token : params.allowed_tokens) {
    TROUPE_RETURN_IF_ERROR(check_token("allowed_token_ids", token, vocab_size));
    if (token <= previous)
      return invalid_argument("allowed_token_ids names token " + std::to_string(token) +
                                  " twice or out of order; name each token once",
                              "allowed_token_ids");
    previous = token;
  }
  return ok_status();
}

Status check_bad_words(const SamplingParams& params, uint32_t vocab_size) {
  size_t tokens = 0;
  for (const auto& word : params.bad_words) {
    if (word.empty()) return invalid_argument("bad_words has an empty word", "bad_words");
    for (const TokenId token : word)
      TROUPE_RETURN_IF_ERROR(check_token("bad_words", token, vocab_size));
    tokens += word.size();
  }
  if (params.bad_words.size() <= kBadWordRunsMax && tokens <= kBadWordTokensMax) return ok_status();
  return invalid_argument("bad_words are " + std::to_string(params.bad_words.size()) +
                              " runs of together " + std::to_string(tokens) + " tokens; at most " +
                              std::to_string(kBadWordRunsMax) + " and " +
                              std::to_string(kBadWordTokensMax) + " are possible",
                          "bad_words");
}

Status check_lengths(const SamplingParams& params, const SamplingLimits& limits) {
  if (params.stop_token_ids.size() > kStopTokenIdsMax)
    return invalid_argument("stop_token_ids has " + std::to_string(params.stop_token_ids.size()) +
                                " entries; at most " + std::to_string(kStopTokenIdsMax) +
                                " are possible",
                            "stop_token_ids");
  for (const TokenId token : params.stop_token_ids)
    TROUPE_RETURN_IF_ERROR(check_token("stop_token_ids", token, limits.vocab_size));
  if (params.max_tokens > limits.context_tokens)
    return refuse(
        "max_tokens", std::to_string(params.max_tokens),
        "at most " + std::to_string(limits.context_tokens) + ", the model's context length");
  const bool is_pooled = params.pooling != Pooling::kNone;
  if (is_pooled && (params.max_tokens > 0 || params.prompt_logprobs >= 0))
    return invalid_argument("a pooled prompt has no output and no scores; set max_tokens to 0",
                            "pooling");
  if (params.max_tokens < 1 && params.prompt_logprobs < 0 && !is_pooled)
    return refuse("max_tokens", "0", "at least 1 unless only the prompt is scored or pooled");
  if (params.min_tokens > params.max_tokens)
    return refuse("min_tokens", std::to_string(params.min_tokens),
                  "at most max_tokens, which is " + std::to_string(params.max_tokens));
  return ok_status();
}

Status check_logprobs(std::string_view name, int32_t count) {
  if (count >= -1 && count <= kLogprobsMax) return ok_status();
  return refuse(name, std::to_string(count), "from 0 to " + std::to_string(kLogprobsMax));
}

}  // namespace

Status validate(const SamplingParams& params, const SamplingLimits& limits) {
  TROUPE_RETURN_IF_ERROR(check_filters(params));
  TROUPE_RETURN_IF_ERROR(check_logit_bias(params, limits.vocab_size));
  TROUPE_RETURN_IF_ERROR(check_allowed_tokens(params, limits.vocab_size));
  TROUPE_RETURN_IF_ERROR(check_bad_words(params, limits.vocab_size));
  TROUPE_RETURN_IF_ERROR(check_lengths(params, limits));
  TROUPE_RETURN_IF_ERROR(check_logprobs(limits.logprobs_name, params.logprobs));
  return check_logprobs("prompt_logprobs", params.prompt_logprobs);
}

}  // namespace troupe
