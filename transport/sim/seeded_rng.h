#pragma once
// The random numbers of a simulated run: one seeded stream, the same on every machine. Its state at
// the end is a fingerprint of everything that was drawn.

#include <cstdint>

#include "base/assert.h"

namespace troupe {

// SplitMix64 of Steele, Lea, Flood: "Fast splittable pseudorandom number generators" (2014). Not
// thread-safe.
class SeededRng final {
 public:
  explicit SeededRng(uint64_t seed) : state_(seed) {}
  SeededRng(const SeededRng&) = delete;
  SeededRng& operator=(const SeededRng&) = delete;

  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
  }
  // In [0, bound). The bias is below 2^-32 for the small bounds that a simulation has.
  uint64_t below(uint64_t bound) {
    TROUPE_ASSERT(bound > 0);
    return next() % bound;
  }
  // In [low, high].
  uint64_t between(uint64_t low, uint64_t high) {
    TROUPE_ASSERT(low <= high, low, high);
    return low + below(high - low + 1);
  }
  // In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  // Draws even when the answer is known, so that a probability of zero does not shift what follows.
  bool chance(double probability) { return uniform() < probability; }

  [[nodiscard]] uint64_t state() const { return state_; }

 private:
  uint64_t state_;
};

}  // namespace troupe
