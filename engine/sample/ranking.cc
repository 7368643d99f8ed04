#include "engine/sample/ranking.h"

#include <algorithm>
#include <limits>

#include "base/assert.h"

namespace troupe {

Ranking::Ranking(uint32_t vocab_size) : buckets_(vocab_size), counts_(kBuckets + 1) {}

void Ranking::start(std::span<const float> logits, float peak) {
  TROUPE_ASSERT(logits.size() == buckets_.size(), logits.size(), buckets_.size());
  logits_ = logits;
  constexpr float kLast = static_cast<float>(kBuckets - 1);
  constexpr float kImpossible = -std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < logits.size(); ++i) {
    // Rounding keeps the order, so a token in an earlier bucket never has the lower logit.
    const float distance = (peak - logits[i]) * kBucketsPerUnit;
    const auto bucket = static_cast<int32_t>(distance < kLast ? distance : kLast);
    buckets_[i] = static_cast<uint16_t>(logits[i] == kImpossible ? int32_t{kBuckets} : bucket);
  }
  std::fill(counts_.begin(), counts_.end(), 0U);
  for (const uint16_t bucket : buckets_) ++counts_[bucket];
}

void Ranking::collect(uint32_t first, uint32_t end, std::vector<Rank>& ranks) const {
  TROUPE_ASSERT(first < end && end <= kBuckets, first, end);
  ranks.clear();
  const uint32_t width = end - first;
  for (size_t i = 0; i < buckets_.size(); ++i)
    if (buckets_[i] - first < width) ranks.push_back({logits_[i], static_cast<TokenId>(i)});
  std::sort(ranks.begin(), ranks.end(), [](const Rank& a, const Rank& b) { return a.before(b); });
}

Ranking::Cut Ranking::cut_at(uint32_t k) const {
  TROUPE_ASSERT(k >= 1);
  Cut cut;
  uint32_t before = 0;
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    if (counts_[bucket] == 0) continue;
    cut = {bucket, before};
    before += counts_[bucket];
    if (before >= k) break;
  }
  TROUPE_ASSERT(before > 0);  // start() was given a finite peak, so some token is possible
  return cut;
}

Rank Ranking::kth(uint32_t k, std::vector<Rank>& scratch) const {
  const Cut cut = cut_at(k);
  collect(cut.bucket, cut.bucket + 1, scratch);
  const size_t index = std::min<size_t>(k - cut.before, scratch.size());
  return scratch[index - 1];
}

void Ranking::top(uint32_t k, std::vector<Rank>& ranks) const {
  if (k == 0) return ranks.clear();
  collect(0, cut_at(k).bucket + 1, ranks);
  if (ranks.size() > k) ranks.resize(k);
}

}  // namespace troupe
