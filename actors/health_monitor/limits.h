#pragma once
// The bounds of what a health monitor keeps.

#include <chrono>
#include <cstddef>

namespace troupe {

// Routers that one monitor observes; more are refused at its start.
inline constexpr size_t kObservedRoutersMax = 64;
// Workers that it keeps; further ones are left out, and counted.
inline constexpr size_t kObservedWorkersMax = 4096;
// Transitions that it can tell of in full; the oldest are forgotten. They stay counted.
inline constexpr size_t kTransitionsKept = 256;
// A worker that is gone is told of for so long.
inline constexpr std::chrono::hours kGoneKept{1};

}  // namespace troupe
