#include "kernels/linear/block_codec.h"

#include <cstring>

#include "base/assert.h"
#include "kernels/reference/float16.h"

namespace troupe {
namespace {

constexpr uint32_t kSubBlocks = 8;  // of 32 weights in a K block of 256

double half_at(const uint8_t* bytes) {
  uint16_t bits = 0;
  std::memcpy(&bits, bytes, sizeof bits);
  return f16_to_f32(bits);
}

// The block that holds weights [32 * index, ...): one of 32 weights, or a K block of 256.
const uint8_t* block_at(WeightType type, const uint8_t* row, uint32_t index) {
  const WeightTypeTraits& traits = traits_of(type);
  return row + size_t{index} * 32 / traits.block_weights * traits.block_bytes;
}

// Scale and minimum of a sub-block: 6 bits each, the upper four pairs split over two places.
BlockScale read_k_scale(const uint8_t* block, uint32_t sub) {
  const uint8_t* packed = block + 4;
  uint32_t scale = packed[sub % 4] & 63U;
  uint32_t minimum = packed[sub % 4 + 4] & 63U;
  if (sub >= 4) {
    scale = (packed[sub + 4] & 15U) | (packed[sub - 4] >> 6U) << 4U;
    minimum = (packed[sub + 4] >> 4U) | (packed[sub] >> 6U) << 4U;
  }
  return {half_at(block) * scale, -half_at(block + 2) * minimum};
}

// Byte j has quant j in its low and quant j + 16 in its high nibble; `high_bits` are the fifth
// ones.
void read_plain_quants(const uint8_t* nibbles, uint32_t high_bits, std::array<uint8_t, 32>& out) {
  for (uint32_t j = 0; j < 16; ++j) {
    out[j] = static_cast<uint8_t>((nibbles[j] & 15U) | (high_bits >> j & 1U) << 4U);
    out[j + 16] = static_cast<uint8_t>(nibbles[j] >> 4U | (high_bits >> (j + 16) & 1U) << 4U);
  }
}

// Sub-blocks 2i and 2i + 1 share 32 bytes, as low and high nibbles; bit s of high[j] is the fifth
// bit of quant j of sub-block s.
void read_k_quants(const uint8_t* nibbles, const uint8_t* high, uint32_t sub,
                   std::array<uint8_t, 32>& out) {
  for (uint32_t j = 0; j < 32; ++j) {
    const uint32_t low = nibbles[sub / 2 * 32 + j] >> (sub % 2 * 4) & 15U;
    const uint32_t fifth = high != nullptr ? high[j] >> sub & 1U : 0U;
    out[j] = static_cast<uint8_t>(low | fifth << 4U);
  }
}

// A Q6_K block: 128 bytes of lower nibbles, 64 of upper bits, 16 factors, one scale.
constexpr size_t kSixHighAt = 128;
constexpr size_t kSixFactorsAt = 192;
constexpr size_t kSixScaleAt = 208;
constexpr size_t kSixBytes = 210;

uint32_t word_at(const uint8_t* bytes) {
  uint32_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

}  // namespace

std::optional<int> block_quant_bits(WeightType type) {
  switch (type) {
    case WeightType::kQ4_0:
    case WeightType::kQ4_1:
    case WeightType::kQ4_K:
      return 4;
    case WeightType::kQ5_0:
    case WeightType::kQ5_1:
    case WeightType::kQ5_K:
      return 5;
    default:
      return std::nullopt;
  }
}

BlockScale read_block_scale(WeightType type, const uint8_t* row, uint32_t index) {
  const uint8_t* block = block_at(type, row, index);
  switch (type) {
    case WeightType::kQ4_0:
      return {half_at(block), -8 * half_at(block)};
    case WeightType::kQ5_0:
      return {half_at(block), -16 * half_at(block)};
    case WeightType::kQ4_1:
    case WeightType::kQ5_1:
      return {half_at(block), half_at(block + 2)};
    default:
      TROUPE_ASSERT(type == WeightType::kQ4_K || type == WeightType::kQ5_K,
                    static_cast<uint32_t>(type));
      return read_k_scale(block, index % kSubBlocks);
  }
}

void read_block_quants(WeightType type, const uint8_t* row, uint32_t index,
                       std::array<uint8_t, 32>& quants) {
  const uint8_t* block = block_at(type, row, index);
  switch (type) {
    case WeightType::kQ4_0:
      return read_plain_quants(block + 2, 0, quants);
    case WeightType::kQ4_1:
      return read_plain_quants(block + 4, 0, quants);
    case WeightType::kQ5_0:
      return read_plain_quants(block + 6, word_at(block + 2), quants);
    case WeightType::kQ5_1:
      return read_plain_quants(block + 8, word_at(block + 4), quants);
    case WeightType::kQ4_K:
      return read_k_quants(block + 16, nullptr, index % kSubBlocks, quants);
    default:
      TROUPE_ASSERT(type == WeightType::kQ5_K, static_cast<uint32_t>(type));
      return read_k_quants(block + 48, block + 16, index % kSubBlocks, quants);
  }
}

double read_six_scale(const uint8_t* row, uint32_t index) {
  return half_at(row + index * kSixBytes + kSixScaleAt);
}

void read_six_quants(const uint8_t* row, uint32_t index, std::array<uint8_t, 256>& quants,
                     std::array<int8_t, 16>& factors) {
  const uint8_t* block = row + index * kSixBytes;
  std::memcpy(factors.data(), block + kSixFactorsAt, sizeof factors);
  // In each half of 128: 32 bytes of upper bits have two for the inputs j, 32 + j, 64 + j and
  // 96 + j; two times 32 bytes have the nibbles of j and 64 + j, and of 32 + j and 96 + j.
  for (uint32_t half = 0; half < 2; ++half) {
    const uint8_t* low = block + half * 64;
    const uint8_t* high = block + kSixHighAt + half * 32;
    uint8_t* out = quants.data() + size_t{half} * 128;
    for (uint32_t j = 0; j < 32; ++j) {
      out[j] = static_cast<uint8_t>((low[j] & 15U) | (high[j] & 3U) << 4U);
      out[j + 32] = static_cast<uint8_t>((low[j + 32] & 15U) | (high[j] >> 2U & 3U) << 4U);
      out[j + 64] = static_cast<uint8_t>(low[j] >> 4U | (high[j] >> 4U & 3U) << 4U);
      out[j + 96] = static_cast<uint8_t>(low[j + 32] >> 4U | (high[j] >> 6U) << 4U);
    }
  }
}

}  // namespace troupe
