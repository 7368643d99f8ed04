#pragma once
// Reads the 4- and 5-bit formats of a GGUF file as value = q * scale + offset per block of 32, and
// Q6_K as value = (q - 32) * factor * scale.
// Layouts: ggml's block structures (ggml-common.h).

#include <array>
#include <cstdint>
#include <optional>

#include "kernels/weight_type.h"

namespace troupe {

// Value type. The weight with quant q is q * scale + offset, in exact arithmetic up to the float
// products that the format itself prescribes.
struct BlockScale {
  double scale = 0;
  double offset = 0;
};

// How many bits the quants of such a type have; nothing for a type that has no scale-and-offset
// blocks of 32 with 4 or 5 bits.
[[nodiscard]] std::optional<int> block_quant_bits(WeightType type);

// Block `index` (of 32 weights) of the row that begins at `row`; any alignment.
[[nodiscard]] BlockScale read_block_scale(WeightType type, const uint8_t* row, uint32_t index);
// Its quants in the order of the inputs.
void read_block_quants(WeightType type, const uint8_t* row, uint32_t index,
                       std::array<uint8_t, 32>& quants);

// Block `index` (of 256 weights) of a Q6_K row: its scale, its quants in the order of the inputs,
// and the factors of each 16 of them.
[[nodiscard]] double read_six_scale(const uint8_t* row, uint32_t index);
void read_six_quants(const uint8_t* row, uint32_t index, std::array<uint8_t, 256>& quants,
                     std::array<int8_t, 16>& factors);

}  // namespace troupe
