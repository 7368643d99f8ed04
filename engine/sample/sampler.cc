#include "engine/sample/sampler.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/philox.h"
#include "engine/sample/exact_math.h"
#include "engine/sample/exponentials.h"

namespace troupe {
namespace {

constexpr float kImpossible = -std::numeric_limits<float>::infinity();
constexpr float kFloatMax = std::numeric_limits<float>::max();

// Independent uses of one seed, told apart by Philox's stream number.
constexpr uint32_t kDrawStream = 0;
constexpr uint32_t kChoiceStream = 1;

using Float4 = float __attribute__((vector_size(16)));
using Int32x4 = int32_t __attribute__((vector_size(16)));

Float4 load4(const float* from) {
  Float4 lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

bool any(Int32x4 mask) {
  const auto halves = std::bit_cast<std::array<uint64_t, 2>>(mask);
  return (halves[0] | halves[1]) != 0;
}

struct Highest {
  float logit = kImpossible;
  bool has_nan = false;
};

// Four vectors side by side, so that one comparison does not wait for the one before it. The
// maximum is the same in any order; a NaN never wins a comparison and is noticed apart.
Highest find_highest(std::span<const float> logits) {
  Float4 highest[4];
  for (Float4& lanes : highest) lanes = Float4{} + kImpossible;
  Int32x4 nan = {};
  size_t i = 0;
  for (; i + 16 <= logits.size(); i += 16) {
#pragma GCC unroll 4  // or the compiler keeps the running values in memory
    for (size_t j = 0; j < 4; ++j) {
      const Float4 lanes = load4(&logits[i + 4 * j]);
      highest[j] = lanes > highest[j] ? lanes : highest[j];
      nan |= lanes != lanes;
    }
  }
  Highest result;
  result.has_nan = any(nan);
  for (const Float4& lanes : highest)
    for (int lane = 0; lane < 4; ++lane) result.logit = std::max(result.logit, lanes[lane]);
  for (; i < logits.size(); ++i) {
    result.has_nan |= std::isnan(logits[i]);
    result.logit = std::max(result.logit, logits[i]);
  }
  return result;
}

// The first token with this logit, which is among them.
TokenId find_first(std::span<const float> logits, float wanted) {
  const Float4 wanted4 = Float4{} + wanted;
  size_t i = 0;
  for (; i + 16 <= logits.size(); i += 16) {
    Int32x4 equal = {};
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) equal |= load4(&logits[i + 4 * j]) == wanted4;
    if (any(equal)) break;
  }
  while (i < logits.size() && logits[i] != wanted) ++i;
  TROUPE_ASSERT(i < logits.size(), wanted);
  return static_cast<TokenId>(i);
}

float finite(float logit) {
  return std::clamp(logit, -kFloatMax, kFloatMax);
}

bool has_penalty(const SamplingParams& params) {
  return params.repetition_penalty != 1.0F || params.presence_penalty != 0.0F ||
         params.frequency_penalty != 0.0F;
}

bool restricts_tokens(const SamplingParams& params) {
  return !params.allowed_tokens.empty() || !params.bad_words.empty();
}

Status nothing_left(const SamplingParams& params, const SampleContext& context) {
  const bool words = params.allowed_tokens.empty();
  return invalid_argument(
      "no token is possible after " + std::to_string(context.output_tokens) +
          " tokens of the answer: allowed_token_ids, bad_words, min_tokens and the form that is "
          "asked for rule out all; rule out less",
      words ? "bad_words" : "allowed_token_ids");
}

Status internal(std::string message) {
  return {StatusCode::kInternal, std::move(message)};
}

}  // namespace

uint64_t choice_seed(uint64_t request_seed, uint32_t choice) {
  return philox_u64(request_seed, choice, kChoiceStream);
}

Sampler::Sampler(uint32_t vocab_size, std::vector<TokenId> end_tokens)
    : vocab_size_(vocab_size),
      end_tokens_(std::move(end_tokens)),
      counts_(vocab_size),
      seen_(vocab_size),
      ranking_(vocab_size),
      weights_(vocab_size),
      masses_(Ranking::kBuckets) {
  TROUPE_ASSERT(vocab_size > 0);
  for (const TokenId token : end_tokens_)
    TROUPE_ASSERT(token >= 0 && static_cast<uint32_t>(token) < vocab_size, token, vocab_size);
}

Result<SampledToken> Sampler::sample(std::span<const float> logits, const SamplingParams& params,
                                     const SampleContext& context) {
  TROUPE_ASSERT(logits.size() == vocab_size_, logits.size(), vocab_size_);
  TROUPE_ASSIGN_OR_RETURN(Peak peak, find_peak(logits));
  const Peak raw_peak = peak;
  const std::span<const float> raw_logits = logits;
  if (changes_logits(params, context)) {
    TROUPE_RETURN_IF_ERROR(adjust(logits, params, context));
    logits = adjusted_;
    const Result<Peak> adjusted_peak = find_peak(logits);
    if (!adjusted_peak.ok()) {
      return restricts_tokens(params) ? nothing_left(params, context) : adjusted_peak.status();
    }
    peak = adjusted_peak.value();
  }

  SampledToken sampled;
  if (params.temperature >= kGreedyTemperature) {
    if (params.top_k > 0 || params.top_p < 1.0F) ranking_.start(logits, peak.logit);
    weigh(logits, peak.logit, params.temperature, weights_);
    if (params.top_k > 0) keep_top_k(logits, static_cast<uint32_t>(params.top_k));
    if (params.top_p < 1.0F) keep_top_p(logits, params.top_p);
    if (params.min_p > 0.0F) keep_min_p(params.min_p);
    sampled.token = draw(params.seed, context.position);
  } else {
    sampled.token = peak.token;
  }
  if (params.logprobs >= 0)
    add_logprobs(raw_logits, raw_peak, static_cast<uint32_t>(params.logprobs), sampled);
  return sampled;
}

Result<SampledToken> Sampler::score(std::span<const float> logits, TokenId token, uint32_t top) {
  TROUPE_ASSERT(logits.size() == vocab_size_, logits.size(), vocab_size_);
  TROUPE_RETURN_IF_ERROR(check_tokens(std::span(&token, 1), "the token to score"));
  TROUPE_ASSIGN_OR_RETURN(const Peak peak, find_peak(logits));
  SampledToken scored;
  scored.token = token;
  add_logprobs(logits, peak, top, scored);
  return scored;
}

Result<Sampler::Peak> Sampler::find_peak(std::span<const float> logits) {
  const Highest highest = find_highest(logits);
  if (highest.has_nan) {
    const auto nan =
        std::find_if(logits.begin(), logits.end(), [](float logit) { return std::isnan(logit); });
    return internal("the model's output is not a number for token " +
                    std::to_string(nan - logits.begin()) +
                    "; its weights or this build's arithmetic are damaged");
  }
  if (highest.logit > kFloatMax)
    return internal("the model's output is infinite for token " +
                    std::to_string(find_first(logits, highest.logit)) +
                    "; its weights or this build's arithmetic are damaged");
  if (highest.logit == kImpossible)
    return internal("no token is possible here: every one is ruled out");
  return Peak{highest.logit, find_first(logits, highest.logit)};
}

void Sampler::add_logprobs(std::span<const float> logits, const Peak& peak, uint32_t top,
                           SampledToken& out) {
  const double log_sum = log_positive(sum_exponentials(logits, peak.logit));
  const auto logprob_of = [&](TokenId token) {
    const double distance =
        static_cast<double>(logits[static_cast<size_t>(token)]) - static_cast<double>(peak.logit);
    return static_cast<float>(std::max(distance - log_sum, double{kLogprobMin}));
  };
  out.logprob = logprob_of(out.token);
  if (top == 0) return;
  ranking_.start(logits, peak.logit);
  ranking_.top(top, ranks_);
  out.top.reserve(ranks_.size());
  for (const Rank& rank : ranks_) out.top.push_back({rank.token, logprob_of(rank.token)});
}

bool Sampler::changes_logits(const SamplingParams& params, const SampleContext& context) const {
  return !context.allowed.empty() || restricts_tokens(params) || !params.logit_bias.empty() ||
         has_penalty(params) || context.output_tokens < params.min_tokens;
}

Status Sampler::check_tokens(std::span<const TokenId> tokens, std::string_view what) const {
  for (const TokenId token : tokens)
    if (token < 0 || static_cast<uint32_t>(token) >= vocab_size_)
      return internal(std::string(what) + " is " + std::to_string(token) +
                      ", outside the vocabulary of " + std::to_string(vocab_size_) + " tokens");
  return ok_status();
}

Status Sampler::adjust(std::span<const float> logits, const SamplingParams& params,
                       const SampleContext& context) {
  adjusted_.assign(logits.begin(), logits.end());
  if (!context.allowed.empty()) apply_mask(context.allowed);
  if (!params.allowed_tokens.empty()) TROUPE_RETURN_IF_ERROR(keep_allowed(params));
  if (!params.bad_words.empty()) TROUPE_RETURN_IF_ERROR(rule_out_bad_words(params, context));
  for (const auto& [token, bias] : params.logit_bias) {
    TROUPE_RETURN_IF_ERROR(check_tokens(std::span(&token, 1), "a token of logit_bias"));
    float& logit = adjusted_[static_cast<size_t>(token)];
    if (logit != kImpossible) logit = finite(logit + bias);
  }
  if (has_penalty(params)) TROUPE_RETURN_IF_ERROR(apply_penalties(params, context));
  return rule_out_ends(params, context);
}

void Sampler::apply_mask(std::span<const uint32_t> allowed) {
  TROUPE_ASSERT(allowed.size() == (vocab_size_ + 31) / 32, allowed.size(), vocab_size_);
  for (size_t word = 0; word < allowed.size(); ++word) {
    const size_t end = std::min<size_t>(vocab_size_, (word + 1) * 32);
    if (allowed[word] == 0) {
      std::fill(adjusted_.begin() + static_cast<ptrdiff_t>(word * 32),
                adjusted_.begin() + static_cast<ptrdiff_t>(end), kImpossible);
    } else if (allowed[word] != ~uint32_t{0}) {
      for (size_t i = word * 32; i < end; ++i)
        if ((allowed[word] >> (i % 32) & 1U) == 0) adjusted_[i] = kImpossible;
    }
  }
}

Status Sampler::keep_allowed(const SamplingParams& params) {
  TROUPE_RETURN_IF_ERROR(check_tokens(params.allowed_tokens, "a token of allowed_token_ids"));
  kept_.clear();
  for (const TokenId token : params.allowed_tokens)
    kept_.push_back(adjusted_[static_cast<size_t>(token)]);
  std::fill(adjusted_.begin(), adjusted_.end(), kImpossible);
  for (size_t i = 0; i < kept_.size(); ++i)
    adjusted_[static_cast<size_t>(params.allowed_tokens[i])] = kept_[i];
  return ok_status();
}

Status Sampler::rule_out_bad_words(const SamplingParams& params, const SampleContext& context) {
  if (context.prompt_tokens > context.history.size())
    return internal("the sampler was given less history than the prompt");
  const std::span<const TokenId> output = context.history.subspan(context.prompt_tokens);
  for (const std::vector<TokenId>& word : params.bad_words) {
    TROUPE_RETURN_IF_ERROR(check_tokens(word, "a token of bad_words"));
    if (word.empty()) return internal("one of bad_words has no tokens");
    const size_t before = word.size() - 1;
    if (before > output.size()) continue;
    if (std::equal(word.begin(), word.end() - 1, output.end() - static_cast<ptrdiff_t>(before)))
      adjusted_[static_cast<size_t>(word.back())] = kImpossible;
  }
  return ok_status();
}

Status Sampler::rule_out_ends(const SamplingParams& params, const SampleContext& context) {
  const bool is_early = context.output_tokens < params.min_tokens;
  const bool has_grammar = !context.allowed.empty();
  if (!is_early && !(has_grammar && params.ignore_eos)) return ok_status();
  TROUPE_RETURN_IF_ERROR(check_tokens(params.stop_token_ids, "a token of stop_token_ids"));
  std::vector<std::pair<TokenId, float>> ends;
  const auto rule_out = [&](const std::vector<TokenId>& tokens) {
    for (const TokenId token : tokens)
      ends.emplace_back(token, std::exchange(adjusted_[static_cast<size_t>(token)], kImpossible));
  };
  rule_out(end_tokens_);
  if (is_early) rule_out(params.stop_token_ids);
  if (!has_grammar) return ok_status();
  const bool is_complete = std::all_of(adjusted_.begin(), adjusted_.end(),
                                       [](float logit) { return logit == kImpossible; });
  if (!is_complete) return ok_status();
  // Backwards, as a token may be named twice.
  for (size_t i = ends.size(); i-- > 0;)
    adjusted_[static_cast<size_t>(ends[i].first)] = ends[i].second;
  return ok_status();
}

Status Sampler::apply_penalties(const SamplingParams& params, const SampleContext& context) {
  const std::span<const TokenId> history = context.history;
  if (context.prompt_tokens > history.size())
    return internal("the sampler was given " + std::to_string(history.size()) +
                    " tokens of history, of which " + std::to_string(context.prompt_tokens) +
                    " should be prompt");
  TROUPE_RETURN_IF_ERROR(check_tokens(history, "a token of the sequence"));
  for (const TokenId token : history) seen_[static_cast<size_t>(token)] = 1;
  for (const TokenId token : history.subspan(context.prompt_tokens))
    ++counts_[static_cast<size_t>(token)];
  for (const TokenId token : history) {
    const auto i = static_cast<size_t>(token);
    if (seen_[i] == 0) continue;  // penalised at an earlier place
    const auto count = static_cast<float>(counts_[i]);
    seen_[i] = 0;
    counts_[i] = 0;
    float logit = adjusted_[i];
    if (logit == kImpossible) continue;
    logit = logit > 0.0F ? logit / params.repetition_penalty : logit * params.repetition_penalty;
    logit -= params.frequency_penalty * count;
    if (count > 0.0F) logit -= params.presence_penalty;
    adjusted_[i] = finite(logit);
  }
  return ok_status();
}

void Sampler::keep_top_k(std::span<const float> logits, uint32_t top_k) {
  if (top_k >= vocab_size_) return;
  const Rank last = ranking_.kth(top_k, ranks_);
  for (size_t i = 0; i < logits.size(); ++i)
    if (last.before({logits[i], static_cast<TokenId>(i)})) weights_[i] = 0.0;
}

void Sampler::keep_top_p(std::span<const float> logits, float top_p) {
  std::fill(masses_.begin(), masses_.end(), 0.0);
  for (size_t i = 0; i < weights_.size(); ++i)
    masses_[std::min(ranking_.bucket_of(static_cast<TokenId>(i)), Ranking::kBuckets - 1)] +=
        weights_[i];  // an impossible token adds 0, wherever
  double total = 0.0;
  for (const double mass : masses_) total += mass;
  const double wanted = static_cast<double>(top_p) * total;

  // The bucket in which the share is reached; the same sum as above, so one is.
  uint32_t bucket = 0;
  double reached = 0.0;
  while (bucket + 1 < Ranking::kBuckets && reached + masses_[bucket] < wanted)
    reached += masses_[bucket++];
  ranking_.collect(bucket, bucket + 1, ranks_);
  TROUPE_ASSERT(!ranks_.empty(), bucket);
  Rank last = ranks_.back();
  for (const Rank& rank : ranks_) {
    reached += weights_[static_cast<size_t>(rank.token)];
    if (reached >= wanted) {
      last = rank;
      break;
    }
  }
  for (size_t i = 0; i < weights_.size(); ++i)
    if (last.before({logits[i], static_cast<TokenId>(i)})) weights_[i] = 0.0;
}

void Sampler::keep_min_p(float min_p) {
  // The most probable token's weight is e^0 = 1, so weights are ratios to its probability.
  for (double& weight : weights_)
    if (weight < static_cast<double>(min_p)) weight = 0.0;
}

TokenId Sampler::draw(uint64_t seed, uint64_t position) const {
  // Sums of 64 weights each, by four running sums; then over the blocks, one after the other.
  constexpr size_t kBlock = 64;
  const size_t count = weights_.size();
  const auto block_sum = [&](size_t begin) {
    const size_t end = std::min(begin + kBlock, count);
    double sums[4] = {};
    size_t i = begin;
    for (; i + 4 <= end; i += 4)
#pragma GCC unroll 4
      for (size_t j = 0; j < 4; ++j) sums[j] += weights_[i + j];
    for (; i < end; ++i) sums[0] += weights_[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  };
  double total = 0.0;
  for (size_t begin = 0; begin < count; begin += kBlock) total += block_sum(begin);
  TROUPE_ASSERT(total > 0.0, total, count);

  const double target = philox_uniform(seed, position, kDrawStream) * total;
  double reached = 0.0;
  size_t begin = 0;
  for (; begin + kBlock < count; begin += kBlock) {
    const double after = reached + block_sum(begin);
    if (after > target) break;
    reached = after;
  }
  // A block's sum and this walk round differently: when the walk ends short of the target, the last
  // token with a weight is the one.
  size_t chosen = count;
  for (size_t i = begin; i < std::min(begin + kBlock, count); ++i) {
    if (weights_[i] == 0.0) continue;
    chosen = i;
    reached += weights_[i];
    if (reached > target) break;
  }
  if (chosen == count) {  // the last block is empty: rounding led past the last weight
    chosen = count - 1;
    while (weights_[chosen] == 0.0) --chosen;
  }
  return static_cast<TokenId>(chosen);
}

}  // namespace troupe
