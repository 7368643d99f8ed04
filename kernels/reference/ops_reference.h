#pragma once
// The plain scalar form of every operation in kernels/ops/ops.h: the definition that the vector
// paths are compared with, and the path of machines without AVX2.

#include "kernels/ops/ops.h"

namespace troupe {

// e^x with a relative error below 2^-22: x is clamped to [-87, 88], n = x / ln 2
// to nearest even, r = x - n ln 2 in two fma steps, then the Taylor polynomial of degree 7 in r by
// Horner's rule with fma, times 2^n. Every step is an IEEE operation: no libm decides a bit. NaN
// gives NaN.
[[nodiscard]] float exp_reference(float x);

[[nodiscard]] const Ops& scalar_ops();

}  // namespace troupe
