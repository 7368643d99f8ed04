#pragma once
// Counter-based random numbers: the n-th draw is a function of (key, counter) alone, so a sampled
// token depends on the request's seed and its position and on nothing that ran before it.
// Philox4x32-10 of Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3"
// (2011).

#include <array>
#include <cstdint>

namespace troupe {

[[nodiscard]] std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter,
                                                 std::array<uint32_t, 2> key);

// Uniform in [0, 1) with 53 bits. `seed` is the sequence's, `position` the index of the sampled
// token in its sequence (prompt included), `stream` separates independent uses.
[[nodiscard]] double philox_uniform(uint64_t seed, uint64_t position, uint32_t stream);

// A well mixed 64-bit value of the same arguments; derives the seeds of a request's n choices.
[[nodiscard]] uint64_t philox_u64(uint64_t seed, uint64_t position, uint32_t stream);

}  // namespace troupe
