#pragma once
// The tokens' order by logit, without sorting a whole vocabulary: tokens are put into buckets by
// their distance from the highest logit, and only the buckets that matter are looked into.

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace troupe {

// A token's place in the one order that everything here uses: higher logit first, then lower id.
struct Rank {
  float logit = 0.0F;
  TokenId token = 0;
  [[nodiscard]] bool before(const Rank& other) const {
    return logit != other.logit ? logit > other.logit : token < other.token;
  }
};

// Holds scratch memory: one per thread.
class Ranking final {
 public:
  // Bucket b holds the logits from b / 64 to (b + 1) / 64 below the highest; the last one all that
  // lie further below (64 below: less than 1e-27 of the highest's probability at temperature 1).
  static constexpr uint32_t kBuckets = 4096;
  static constexpr float kBucketsPerUnit = 64.0F;

  explicit Ranking(uint32_t vocab_size);

  // Puts every token whose logit is above −∞ into its bucket. `peak` is the highest logit, finite;
  // there is no NaN. `logits` has vocab_size values and stays as it is while this order is asked
  // for.
  void start(std::span<const float> logits, float peak);

  [[nodiscard]] uint32_t bucket_of(TokenId token) const {
    return buckets_[static_cast<size_t>(token)];
  }
  // Fills `ranks` with the tokens of buckets [first, end), in order.
  void collect(uint32_t first, uint32_t end, std::vector<Rank>& ranks) const;
  // The k-th token in order, k ≥ 1; the last one when there are fewer.
  [[nodiscard]] Rank kth(uint32_t k, std::vector<Rank>& scratch) const;
  // Fills `ranks` with the first k tokens in order, or all when there are fewer.
  void top(uint32_t k, std::vector<Rank>& ranks) const;

 private:
  struct Cut {
    uint32_t bucket = 0;  // the bucket that holds the k-th token, or the last one in use
    uint32_t before = 0;  // tokens in the buckets before it
  };
  [[nodiscard]] Cut cut_at(uint32_t k) const;

  std::span<const float> logits_;
  std::vector<uint16_t> buckets_;  // per token; kBuckets: impossible
  std::vector<uint32_t> counts_;   // per bucket, and one for the impossible tokens
};

}  // namespace troupe
