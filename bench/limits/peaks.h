#pragma once
// What this machine can do at best: how fast it reads, and how fast it multiplies. Measured by
// loops that do nothing else.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace troupe::limits {

// An instruction whose rate bounds a kind of work.
enum class Unit {
  kFloat,     // fused multiply-add of 32-bit floats: attention, norms
  kWords,     // products of 16-bit integers, summed in pairs: one row of a linear layer
  kBytes,     // products of 8-bit integers, summed in fours
  kByteTile,  // products of 8-bit integers in tile registers
};
inline constexpr Unit kUnits[] = {Unit::kFloat, Unit::kWords, Unit::kBytes, Unit::kByteTile};

// "fp32 fma", "int16 pairs", ...
[[nodiscard]] std::string_view name_of(Unit unit);
[[nodiscard]] bool machine_has(Unit unit);

// Operations per second of all threads together: a multiplication and an addition are two. The best
// of a few runs; 0 where the machine has no such unit.
[[nodiscard]] double peak_rate(Unit unit, uint32_t threads);

// Bytes per second of all threads together, each reading its own `bytes` over and over: the best
// and the median of several passes, the first one apart.
struct ReadRate {
  double best = 0.0;
  double median = 0.0;
};
[[nodiscard]] ReadRate read_rate(size_t bytes, uint32_t threads);

// Of the first processor; 0 where the system does not tell.
struct CacheSizes {
  size_t l2 = 0;
  size_t l3 = 0;
};
[[nodiscard]] CacheSizes cache_sizes();

}  // namespace troupe::limits
