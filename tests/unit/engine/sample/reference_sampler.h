#pragma once
// The sampler's steps as their definitions read: sorts everything, uses the C library, is slow.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "base/philox.h"
#include "engine/sample/sampler.h"

namespace troupe::reference {

struct Entry {
  TokenId token = 0;
  double logit = 0.0;
  double probability = 0.0;
};

inline std::vector<float> adjusted(std::vector<float> logits, const SamplingParams& params,
                                   const SampleContext& context,
                                   const std::vector<TokenId>& end_tokens) {
  for (const auto& [token, bias] : params.logit_bias) logits[static_cast<size_t>(token)] += bias;
  std::set<TokenId> seen(context.history.begin(), context.history.end());
  std::map<TokenId, int> counts;
  for (size_t i = context.prompt_tokens; i < context.history.size(); ++i)
    ++counts[context.history[i]];
  for (const TokenId token : seen) {
    float& logit = logits[static_cast<size_t>(token)];
    logit = logit > 0.0F ? logit / params.repetition_penalty : logit * params.repetition_penalty;
    logit -= params.frequency_penalty * static_cast<float>(counts[token]);
    if (counts[token] > 0) logit -= params.presence_penalty;
  }
  if (context.output_tokens < params.min_tokens) {
    const float impossible = -std::numeric_limits<float>::infinity();
    for (const TokenId token : end_tokens) logits[static_cast<size_t>(token)] = impossible;
    for (const TokenId token : params.stop_token_ids)
      logits[static_cast<size_t>(token)] = impossible;
  }
  return logits;
}

// What is left after all filters, most probable first; probabilities sum to 1.
inline std::vector<Entry> filtered(const std::vector<float>& logits, const SamplingParams& params) {
  std::vector<Entry> entries;
  for (size_t i = 0; i < logits.size(); ++i)
    if (logits[i] > -std::numeric_limits<float>::infinity())
      entries.push_back({static_cast<TokenId>(i), static_cast<double>(logits[i])});
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.logit > b.logit; });
  const auto normalise = [&entries] {
    double sum = 0.0;
    for (const Entry& entry : entries) sum += entry.probability;
    for (Entry& entry : entries) entry.probability /= sum;
  };
  for (Entry& entry : entries)
    entry.probability =
        std::exp((entry.logit - entries.front().logit) / static_cast<double>(params.temperature));
  if (params.top_k > 0 && static_cast<size_t>(params.top_k) < entries.size())
    entries.resize(static_cast<size_t>(params.top_k));
  normalise();
  double share = 0.0;
  size_t kept = 0;
  while (kept < entries.size() && share < static_cast<double>(params.top_p))
    share += entries[kept++].probability;
  if (params.top_p < 1.0F) entries.resize(kept);
  const double least = static_cast<double>(params.min_p) * entries.front().probability;
  while (entries.back().probability < least * (1.0 - 1e-12)) entries.pop_back();
  normalise();
  return entries;
}

// The draw walks through the tokens by ascending id.
inline TokenId drawn(std::vector<Entry> entries, uint64_t seed, uint64_t position) {
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.token < b.token; });
  const double target = philox_uniform(seed, position, 0);
  double reached = 0.0;
  for (const Entry& entry : entries) {
    reached += entry.probability;
    if (reached > target) return entry.token;
  }
  return entries.back().token;
}

}  // namespace troupe::reference
