#pragma once
// The AMX kernel on any machine with AVX-512.

#include "kernels/linear/linear_kernels.h"

namespace troupe {

// linear_amx() with the tile instructions done in plain C++; slow.
void linear_emulated_tiles(const LinearCall& call);

}  // namespace troupe
