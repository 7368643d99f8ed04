#pragma once
// Plain scalar de-quantisation of GGUF's tensor types to float: the definition that every faster
// path is compared with. Layouts and formulas: ggml's block structures (ggml-common.h) and its
// dequantize_row_* functions; results equal those of the Python package `gguf` bit for bit.

#include <cstddef>
#include <cstdint>

#include "kernels/weight_type.h"

namespace troupe {

// Writes rows * row_weights floats to `out`. `blocks` holds the rows one after the other as the
// file stores them (little-endian) and may have any alignment. `row_weights` is a multiple of the
// type's block_weights (asserted). No allocation; thread-safe. NaN and infinite scales are carried
// through.
void dequantize(WeightType type, const void* blocks, size_t rows, size_t row_weights, float* out);

}  // namespace troupe
