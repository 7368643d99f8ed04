#include "sim/workload.h"

#include <algorithm>

#include "transport/sim/seeded_rng.h"

namespace troupe::sim {
namespace {

std::vector<TokenId> random_tokens(SeededRng& rng, uint64_t count, uint32_t vocabulary) {
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(rng.below(vocabulary));
  return tokens;
}

}  // namespace

RandomWorkload::RandomWorkload(const RandomWorkloadOptions& options) : options_(options) {
  SeededRng rng(options.seed ^ 0x3039);
  const auto window = static_cast<uint64_t>(options.window.count());
  const uint64_t heaps = options.bursts ? rng.between(1, 6) : 0;
  for (uint32_t i = 0; i < options.requests; ++i) {
    const uint64_t at = heaps > 0 ? rng.below(heaps) * (window / heaps) : rng.below(window + 1);
    arrivals_.emplace_back(at);
  }
  std::sort(arrivals_.begin(), arrivals_.end());
  for (uint32_t i = 0; i < options.shared_prefixes; ++i) {
    const uint64_t length = rng.between(1, std::max(1U, options.prompt_tokens_max * 3 / 4));
    prefixes_.push_back(random_tokens(rng, length, options.vocabulary));
  }
}

SimRequest RandomWorkload::make(size_t index) const {
  SeededRng rng(options_.seed * 0x9e37 + index * 0x79b9 + 1);
  SimRequest request;
  if (!prefixes_.empty() && rng.chance(0.5)) {
    request.prompt = prefixes_[rng.below(prefixes_.size())];
  }
  const uint64_t room = options_.prompt_tokens_max > request.prompt.size()
                            ? options_.prompt_tokens_max - request.prompt.size()
                            : 1;
  const auto tail = random_tokens(rng, rng.between(1, room), options_.vocabulary);
  request.prompt.insert(request.prompt.end(), tail.begin(), tail.end());
  const uint64_t choices = rng.between(1, options_.choices_max);
  SamplingParams params;
  params.max_tokens = static_cast<uint32_t>(rng.between(1, options_.output_tokens_max));
  params.min_tokens = static_cast<uint32_t>(rng.below(params.max_tokens + 1));
  params.ignore_eos = rng.chance(0.5);
  if (rng.chance(options_.logprobs)) params.logprobs = static_cast<int32_t>(rng.below(4));
  if (rng.chance(options_.score_prompt)) {
    params.prompt_logprobs = static_cast<int32_t>(rng.below(2));
    if (rng.chance(0.3)) params.max_tokens = params.min_tokens = 0;
  }
  if (rng.chance(options_.named_stops)) {
    params.stop_token_ids = random_tokens(rng, 2, options_.vocabulary);
  }
  if (params.prompt_logprobs >= 0 && options_.pooled > 0.0) {
    params.score_from = static_cast<uint32_t>(rng.between(1, request.prompt.size() + 1));
  }
  if (options_.pooled > 0.0 && rng.chance(options_.pooled)) {
    params.pooling = rng.chance(0.7) ? Pooling::kMean : Pooling::kLast;
    params.max_tokens = params.min_tokens = 0;
    params.prompt_logprobs = -1;
  }
  for (uint64_t i = 0; i < choices; ++i) {
    params.seed = rng.next();
    request.choices.push_back(params);
  }
  if (rng.chance(options_.salted)) request.cache_salt = "tenant";
  request.front = rng.next();
  request.retries = options_.retries;
  if (rng.chance(options_.leave)) {
    if (rng.chance(0.5)) {
      request.leaves_after = std::chrono::microseconds(rng.below(3000000));
    } else {
      request.leaves_after_tokens = static_cast<uint32_t>(rng.between(1, params.max_tokens + 1));
    }
  }
  if (choices > 1 && rng.chance(options_.leave)) {
    request.stops_last_choice_after = static_cast<uint32_t>(rng.between(1, params.max_tokens + 1));
  }
  return request;
}

}  // namespace troupe::sim
