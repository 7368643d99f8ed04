#pragma once
// The definition of a linear layer, in plain C++. See kernels/linear/linear.h.

#include "kernels/linear/linear_kernels.h"

namespace troupe {

// The integer W[output][input] of packed weights; both within the padded sizes.
[[nodiscard]] int32_t linear_weight(const LinearWeights& weights, uint32_t output, uint32_t input);

// The integer A[row][input] of quantised activations, read from their words.
[[nodiscard]] int32_t linear_activation(const LinearActivations& activations, uint32_t row,
                                        uint32_t input);

}  // namespace troupe
