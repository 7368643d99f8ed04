#include "kernels/reference/dequantize.h"

#include <bit>
#include <cstring>

#include "base/assert.h"
#include "kernels/reference/float16.h"

namespace troupe {
namespace {

static_assert(std::endian::native == std::endian::little,
              "blocks are read as they lie in the file");

uint16_t load_u16(const uint8_t* bytes) {
  return static_cast<uint16_t>(bytes[0] | (bytes[1] << 8U));
}

float load_f16(const uint8_t* bytes) {
  return f16_to_f32(load_u16(bytes));
}

// The 4-bit types store element i of a block of 32 in the low half of byte i, and element i + 16 in
// its high half.
uint32_t nibble(const uint8_t* quants, uint32_t i) {
  return i < 16 ? quants[i] & 0x0FU : quants[i - 16] >> 4U;
}

// The fifth bits of the 5-bit types: bit i of a little-endian word.
uint32_t fifth_bit(const uint8_t* high, uint32_t i) {
  return ((high[i / 8] >> (i % 8)) & 1U) << 4U;
}

void q4_0(const uint8_t* block, float* out) {
  const float scale = load_f16(block);
  for (uint32_t i = 0; i < 32; ++i)
    out[i] = scale * static_cast<float>(static_cast<int32_t>(nibble(block + 2, i)) - 8);
}

void q4_1(const uint8_t* block, float* out) {
  const float scale = load_f16(block);
  const float minimum = load_f16(block + 2);
  for (uint32_t i = 0; i < 32; ++i)
    out[i] = scale * static_cast<float>(nibble(block + 4, i)) + minimum;
}

void q5_0(const uint8_t* block, float* out) {
  const float scale = load_f16(block);
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t quant = nibble(block + 6, i) | fifth_bit(block + 2, i);
    out[i] = scale * static_cast<float>(static_cast<int32_t>(quant) - 16);
  }
}

void q5_1(const uint8_t* block, float* out) {
  const float scale = load_f16(block);
  const float minimum = load_f16(block + 2);
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t quant = nibble(block + 8, i) | fifth_bit(block + 4, i);
    out[i] = scale * static_cast<float>(quant) + minimum;
  }
}

void q8_0(const uint8_t* block, float* out) {
  const float scale = load_f16(block);
  for (uint32_t i = 0; i < 32; ++i)
    out[i] = scale * static_cast<float>(static_cast<int8_t>(block[2 + i]));
}

struct ScaleAndMin {
  float scale, minimum;
};

// The 4- and 5-bit K types keep eight 6-bit scales and eight 6-bit minimums in 12 bytes: the first
// four of each in the low six bits of bytes 0-3 and 4-7; of the last four, the low four bits in
// bytes 8-11 and the high two in the spare bits of bytes 0-7.
ScaleAndMin k_scale(const uint8_t* block, uint32_t group) {
  const uint8_t* packed = block + 4;
  uint32_t scale = 0;
  uint32_t minimum = 0;
  if (group < 4) {
    scale = packed[group] & 0x3FU;
    minimum = packed[group + 4] & 0x3FU;
  } else {
    scale = (packed[group + 4] & 0x0FU) | ((packed[group - 4] >> 6U) << 4U);
    minimum = (packed[group + 4] >> 4U) | ((packed[group] >> 6U) << 4U);
  }
  return {load_f16(block) * static_cast<float>(scale),
          load_f16(block + 2) * static_cast<float>(minimum)};
}

// Element i of group g of 32: byte 32 (g / 2) + i, low half for an even group, high for an odd one.
uint32_t k_nibble(const uint8_t* quants, uint32_t group, uint32_t i) {
  return (quants[32 * (group / 2) + i] >> (4 * (group % 2))) & 0x0FU;
}

void q4_k(const uint8_t* block, float* out) {
  for (uint32_t group = 0; group < 8; ++group) {
    const ScaleAndMin s = k_scale(block, group);
    for (uint32_t i = 0; i < 32; ++i)
      out[32 * group + i] =
          s.scale * static_cast<float>(k_nibble(block + 16, group, i)) - s.minimum;
  }
}

void q5_k(const uint8_t* block, float* out) {
  const uint8_t* high = block + 16;  // bit g of byte i belongs to element i of group g
  for (uint32_t group = 0; group < 8; ++group) {
    const ScaleAndMin s = k_scale(block, group);
    for (uint32_t i = 0; i < 32; ++i) {
      const uint32_t quant = k_nibble(block + 48, group, i) | (((high[i] >> group) & 1U) << 4U);
      out[32 * group + i] = s.scale * static_cast<float>(quant) - s.minimum;
    }
  }
}

void q6_k(const uint8_t* block, float* out) {
  const float scale = load_f16(block + 208);
  for (uint32_t i = 0; i < 256; ++i) {
    const uint32_t half = i / 128;
    const uint32_t in_half = i % 128;
    const uint32_t low = (block[64 * half + in_half % 64] >> (4 * (in_half / 64))) & 0x0FU;
    const uint32_t high = (block[128 + 32 * half + in_half % 32] >> (2 * (in_half / 32))) & 3U;
    const float group_scale = scale * static_cast<float>(static_cast<int8_t>(block[192 + i / 16]));
    out[i] = group_scale * static_cast<float>(static_cast<int32_t>(low | (high << 4U)) - 32);
  }
}

void f32(const uint8_t* block, float* out) {
  std::memcpy(out, block, sizeof *out);
}

void f16(const uint8_t* block, float* out) {
  *out = load_f16(block);
}

void bf16(const uint8_t* block, float* out) {
  *out = bf16_to_f32(load_u16(block));
}

using BlockFunction = void (*)(const uint8_t* block, float* out);

BlockFunction block_function(WeightType type) {
  switch (type) {
    case WeightType::kF32:
      return f32;
    case WeightType::kF16:
      return f16;
    case WeightType::kBF16:
      return bf16;
    case WeightType::kQ4_0:
      return q4_0;
    case WeightType::kQ4_1:
      return q4_1;
    case WeightType::kQ5_0:
      return q5_0;
    case WeightType::kQ5_1:
      return q5_1;
    case WeightType::kQ8_0:
      return q8_0;
    case WeightType::kQ4_K:
      return q4_k;
    case WeightType::kQ5_K:
      return q5_k;
    case WeightType::kQ6_K:
      return q6_k;
  }
  return nullptr;
}

}  // namespace

void dequantize(WeightType type, const void* blocks, size_t rows, size_t row_weights, float* out) {
  const BlockFunction function = block_function(type);
  TROUPE_ASSERT(function != nullptr, static_cast<uint32_t>(type));
  const WeightTypeTraits& traits = traits_of(type);
  TROUPE_ASSERT(row_weights % traits.block_weights == 0, traits.name, row_weights);
  const auto* block = static_cast<const uint8_t*>(blocks);
  const size_t count = rows * (row_weights / traits.block_weights);
  for (size_t i = 0; i < count; ++i)
    function(block + i * traits.block_bytes, out + i * traits.block_weights);
}

}  // namespace troupe
