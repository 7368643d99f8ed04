#include "kernels/linear/row_packing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <string>

#include "base/assert.h"
#include "kernels/reference/dequantize.h"
#include "kernels/reference/float16.h"

namespace troupe {
namespace {

// A row whose largest weight is below this is zero: the inverse of its scale would not be finite.
constexpr double kSmallestMax = 0x1p-100;

template <class T>
void store(uint8_t* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

uint32_t load32(const uint8_t* from) {
  uint32_t value = 0;
  std::memcpy(&value, from, sizeof value);
  return value;
}

uint8_t* chunk_of(const Lane& lane, LinearFormat format, uint32_t index) {
  return lane.group + linear_chunk_at(format, index);
}

void store_word(const Lane& lane, uint32_t input, int32_t weight) {
  uint8_t* chunk = chunk_of(lane, LinearFormat::kWord, input / kLinearChunk);
  const uint32_t quad = input % kLinearChunk / 4;
  const uint32_t vector = quad * 2 + input % 2;
  store(chunk + vector * 64 + lane.lane * 4 + input % 4 / 2 * 2, static_cast<int16_t>(weight));
}

// Four quants: byte j of a word is input 4w + j.
constexpr uint32_t kLowNibbles = 0x0F0F0F0FU;

// The lower four bits of 8 * N quants.
template <size_t N>
void store_nibbles(uint8_t* to, const uint32_t* words) {
  for (size_t r = 0; r < N; ++r)
    store(to + r * 64, (words[2 * r] & kLowNibbles) | (words[2 * r + 1] & kLowNibbles) << 4U);
}

// The quants of a Q4 or Q5 block of 32 stand as 16 bytes: low nibbles first, then the high ones.
void read_plain_nibbles(const uint8_t* bytes, std::array<uint32_t, 8>& words) {
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t four = load32(bytes + 4 * i);
    words[i] = four & kLowNibbles;
    words[i + 4] = four >> 4U & kLowNibbles;
  }
}

// Bit i of `bits` to bit i / 4 of byte i % 4.
uint32_t transpose_bits(uint32_t bits) {
  uint32_t out = 0;
  for (uint32_t j = 0; j < 4; ++j) {
    uint32_t every_fourth = bits >> j & 0x11111111U;
    every_fourth = (every_fourth | every_fourth >> 3U) & 0x03030303U;
    every_fourth = (every_fourth | every_fourth >> 6U) & 0x000F000FU;
    out |= ((every_fourth | every_fourth >> 12U) & 0xFFU) << 8 * j;
  }
  return out;
}

// The quants of a block as words of their lower four bits, and the plane of their fifth ones.
struct BlockQuants {
  std::array<uint32_t, 8> words{};
  uint32_t fifth = 0;
};
BlockQuants block_quants(WeightType type, const uint8_t* row, uint32_t block) {
  BlockQuants out;
  const size_t at = size_t{block} * traits_of(type).block_bytes;
  switch (type) {
    case WeightType::kQ4_0:
      read_plain_nibbles(row + at + 2, out.words);
      return out;
    case WeightType::kQ4_1:
      read_plain_nibbles(row + at + 4, out.words);
      return out;
    case WeightType::kQ5_0:
      read_plain_nibbles(row + at + 6, out.words);
      out.fifth = transpose_bits(load32(row + at + 2));
      return out;
    case WeightType::kQ5_1:
      read_plain_nibbles(row + at + 8, out.words);
      out.fifth = transpose_bits(load32(row + at + 4));
      return out;
    default:
      break;
  }
  std::array<uint8_t, 32> quants{};
  read_block_quants(type, row, block, quants);
  std::memcpy(out.words.data(), quants.data(), sizeof out.words);
  for (uint32_t v = 0; v < 8; ++v) out.fifth |= (out.words[v] >> 4U & 0x01010101U) << v;
  return out;
}

// W = q * S + B of one block. B makes up for the rounding of S where q is in its middle, so that
// the error of a weight is at most half the quants' range times half a unit, plus half a unit; and
// a symmetric format keeps its zero exactly.
struct IntegerScale {
  int32_t scale;
  int32_t offset;
};
IntegerScale round_scale(BlockScale exact, double units, int bits) {
  const double scale = exact.scale * units;
  const auto rounded = static_cast<int32_t>(std::lrint(scale));
  const double middle = 1 << (bits - 1);
  const double offset = exact.offset * units + middle * (scale - rounded);
  const IntegerScale result{rounded, static_cast<int32_t>(std::lrint(offset))};
  [[maybe_unused]] const int32_t last = ((1 << bits) - 1) * result.scale + result.offset;
  TROUPE_DCHECK(std::abs(result.offset) <= kWeightMax, result.offset);
  TROUPE_DCHECK(std::abs(last) <= kWeightMax, last);
  return result;
}

Status not_finite(uint32_t row) {
  return {StatusCode::kDataLoss, "Row " + std::to_string(row) +
                                     " of a weight matrix holds a NaN or an infinity; the model "
                                     "file is damaged: get it anew."};
}

// The float scale of a row whose integers may reach `most`; 0 for a row of zeros.
float scale_of(double max, double most) {
  return max < kSmallestMax ? 0.0F : static_cast<float>(max / most);
}

Status pack_block_row(WeightType type, LinearFormat format, const uint8_t* row, uint32_t number,
                      std::span<BlockScale> scales, const Lane& lane, float* row_scale) {
  const int bits = *block_quant_bits(type);
  const int most = (1 << bits) - 1;
  double max = 0;
  for (uint32_t b = 0; b < scales.size(); ++b) {
    scales[b] = read_block_scale(type, row, b);
    const double last = most * scales[b].scale + scales[b].offset;
    if (!std::isfinite(last) || !std::isfinite(scales[b].offset)) return not_finite(number);
    max = std::max({max, std::abs(scales[b].offset), std::abs(last)});
  }
  // Rounding S and B may add (2^(bits - 1) + 1) / 2 to the largest integer.
  *row_scale = scale_of(max, kWeightMax - (1 << (bits - 2)) - 1);
  if (*row_scale == 0) return ok_status();
  const double units = 1 / static_cast<double>(*row_scale);
  for (uint32_t b = 0; b < scales.size(); ++b) {
    const IntegerScale s = round_scale(scales[b], units, bits);
    const BlockQuants quants = block_quants(type, row, b);
    uint8_t* chunk = chunk_of(lane, format, b / 2);
    store_nibbles<4>(chunk + b % 2 * 256 + lane.lane * 4, quants.words.data());
    if (bits == 5) store(chunk + kFiveBitsAt + b % 2 * 64 + lane.lane * 4, quants.fifth);
    uint8_t* to = chunk + linear_scales_at(format, b % 2) + lane.lane * 2;
    store(to, static_cast<int16_t>(s.scale));
    if (format == LinearFormat::kFiveCentred) {
      TROUPE_DCHECK(s.offset == -kFiveOffset * s.scale, s.offset, s.scale);
    } else {
      store(to + 32, static_cast<int16_t>(s.offset));
    }
  }
  return ok_status();
}

// Q6_K: a block of 256 has its own scale, and 16 more factors of 8 bits, which stay as they are.
Status pack_six_row(const uint8_t* row, uint32_t number, uint32_t n_in, const Lane& lane,
                    float* row_scale) {
  const uint32_t blocks = n_in / kSixSuper;
  double max = 0;
  for (uint32_t b = 0; b < blocks; ++b) {
    const double scale = read_six_scale(row, b);
    if (!std::isfinite(scale)) return not_finite(number);
    max = std::max(max, std::abs(scale));
  }
  *row_scale = scale_of(max, six_scale_max(n_in));
  if (*row_scale == 0) return ok_status();
  const double units = 1 / static_cast<double>(*row_scale);
  for (uint32_t b = 0; b < blocks; ++b) {
    std::array<uint8_t, kSixSuper> quants{};
    std::array<int8_t, kSixSuper / kSixSub> factors{};
    read_six_quants(row, b, quants, factors);
    std::array<uint32_t, kSixSuper / 4> words{};
    std::memcpy(words.data(), quants.data(), sizeof words);
    uint8_t* super = lane.group + b * kSixSuperBytes;
    const auto scale = std::lrint(read_six_scale(row, b) * units);
    TROUPE_DCHECK(std::abs(scale) <= six_scale_max(n_in), scale);
    store(super + kSixScalesAt + lane.lane * 2, static_cast<int16_t>(scale));
    for (uint32_t s = 0; s < factors.size(); ++s) {
      uint8_t* chunk = super + s / 4 * kSixChunkBytes;
      uint8_t* sub = chunk + s % 4 * kSixSubBytes + lane.lane * 4;
      store_nibbles<2>(sub, &words[size_t{4} * s]);
      uint32_t plane = 0;
      for (uint32_t f = 0; f < 4; ++f)
        plane |= (words[size_t{4} * s + f] >> 4U & 0x03030303U) << 2 * f;
      store(sub + kSixBitsAt, plane);
      // In the order 0, 2, 1, 3.
      store(chunk + kSixFactorsAt + lane.lane * 4 + s % 2 * 2 + s % 4 / 2, factors[s]);
    }
  }
  return ok_status();
}

// Q8_0: a block is a binary16 scale and 32 int8 quants.
Status pack_byte_row(const uint8_t* row, uint32_t number, uint32_t blocks, const Lane& lane,
                     float* row_scale) {
  constexpr size_t kBlockBytes = 34;
  const auto scale_at = [row](uint32_t block) -> double {
    uint16_t bits = 0;
    std::memcpy(&bits, row + block * kBlockBytes, sizeof bits);
    return f16_to_f32(bits);
  };
  double max = 0;
  for (uint32_t b = 0; b < blocks; ++b) {
    if (!std::isfinite(scale_at(b))) return not_finite(number);
    max = std::max(max, std::abs(scale_at(b)));
  }
  *row_scale = scale_of(max, kByteScaleMax);
  const double units = *row_scale == 0 ? 0 : 1 / static_cast<double>(*row_scale);
  for (uint32_t b = 0; b < blocks; ++b) {
    uint8_t* chunk = chunk_of(lane, LinearFormat::kByte, b / 2);
    const auto scale = std::lrint(scale_at(b) * units);
    store(chunk + linear_scales_at(LinearFormat::kByte, b % 2) + lane.lane * 2,
          static_cast<int16_t>(scale));
    const uint8_t* quants = row + b * kBlockBytes + 2;
    // q + 128 as a byte is q with its sign bit turned over.
    for (uint32_t r = 0; r < 8; ++r)
      store(chunk + b % 2 * 512 + r * 64 + lane.lane * 4, load32(quants + 4 * r) ^ 0x80808080U);
  }
  return ok_status();
}

Status pack_float_row(const float* row, uint32_t number, uint32_t n_in, const Lane& lane,
                      float* row_scale) {
  double max = 0;
  for (uint32_t k = 0; k < n_in; ++k) {
    if (!std::isfinite(row[k])) return not_finite(number);
    max = std::max(max, std::abs(static_cast<double>(row[k])));
  }
  *row_scale = scale_of(max, kWeightMax);
  if (*row_scale == 0) return ok_status();
  const double units = 1 / static_cast<double>(*row_scale);
  for (uint32_t k = 0; k < n_in; ++k) {
    const auto weight = static_cast<int32_t>(std::lrint(row[k] * units));
    TROUPE_DCHECK(std::abs(weight) <= kWeightMax, weight, number, k);
    store_word(lane, k, weight);
  }
  return ok_status();
}

}  // namespace

LinearFormat linear_format(WeightType type) {
  switch (type) {
    case WeightType::kQ4_0:
    case WeightType::kQ4_1:
    case WeightType::kQ4_K:
      return LinearFormat::kNibble;
    case WeightType::kQ5_0:
      return LinearFormat::kFiveCentred;
    case WeightType::kQ5_1:
    case WeightType::kQ5_K:
      return LinearFormat::kFive;
    case WeightType::kQ6_K:
      return LinearFormat::kSix;
    case WeightType::kQ8_0:
      return LinearFormat::kByte;
    case WeightType::kF32:
    case WeightType::kF16:
    case WeightType::kBF16:
      break;
  }
  return LinearFormat::kWord;
}

RowPacker::RowPacker(WeightType type, uint32_t n_in)
    : type_(type),
      format_(linear_format(type)),
      n_in_(n_in),
      values_(format_ == LinearFormat::kWord ? n_in : 0),
      scales_(block_quant_bits(type) ? n_in / kLinearBlock : 0) {}

Status RowPacker::pack(const uint8_t* row, uint32_t number, const Lane& lane, float* row_scale) {
  switch (format_) {
    case LinearFormat::kByte:
      return pack_byte_row(row, number, n_in_ / kLinearBlock, lane, row_scale);
    case LinearFormat::kSix:
      return pack_six_row(row, number, n_in_, lane, row_scale);
    case LinearFormat::kWord:
      dequantize(type_, row, 1, n_in_, values_.data());
      return pack_float_row(values_.data(), number, n_in_, lane, row_scale);
    default:
      return pack_block_row(type_, format_, row, number, scales_, lane, row_scale);
  }
}

}  // namespace troupe
