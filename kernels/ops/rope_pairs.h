#pragma once
#include <cstdint>

namespace troupe {

// Which two elements of a head a rotary embedding of n elements turns together: pair i is
// (2i, 2i + 1), or (i, i + n / 2).
enum class RopePairs : uint8_t { kAdjacent, kHalves };

}  // namespace troupe
