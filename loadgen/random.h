#pragma once
#include <cstdint>

namespace troupe::loadgen {

// Random numbers in a sequence that (seed, stream) alone decides. Different streams of one seed are
// independent. A value; not thread-safe.
class Random {
 public:
  Random(uint64_t seed, uint32_t stream) : seed_(seed), stream_(stream) {}

  [[nodiscard]] double uniform();                                 // in [0, 1)
  [[nodiscard]] uint64_t below(uint64_t bound);                   // in [0, bound); bound > 0
  [[nodiscard]] uint64_t between(uint64_t least, uint64_t most);  // both ends included
  [[nodiscard]] double normal();                                  // mean 0, variance 1
  // Mean shape * scale, variance shape * scale^2; both positive. Marsaglia and Tsang: "A simple
  // method for generating gamma variables" (2000).
  [[nodiscard]] double gamma(double shape, double scale);

 private:
  uint64_t seed_;
  uint32_t stream_;
  uint64_t drawn_ = 0;
};

// What the streams of one seed are for.
namespace streams {
inline constexpr uint32_t kArrivals = 1;
inline constexpr uint32_t kPrompts = 2;
inline constexpr uint32_t kPrefixes = 3;
inline constexpr uint32_t kTraceBlocks = 4;
inline constexpr uint32_t kTraceTails = 5;
}  // namespace streams

}  // namespace troupe::loadgen
