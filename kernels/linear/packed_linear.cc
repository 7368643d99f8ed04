#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/assert.h"
#include "kernels/linear/block_codec.h"
#include "kernels/linear/linear.h"
#include "kernels/reference/dequantize.h"
#include "kernels/reference/float16.h"
#include "kernels/reference/linear_reference.h"

namespace troupe {
namespace {

// A row whose largest weight is below this is zero: the inverse of its scale would not be finite.
constexpr double kSmallestMax = 0x1p-100;

uint32_t chunks_of(uint32_t n_in) {
  return (n_in + kLinearChunk - 1) / kLinearChunk;
}
uint32_t groups_of(uint32_t n_out) {
  return (n_out + kLinearLanes - 1) / kLinearLanes;
}

LinearFormat format_of(WeightType type) {
  if (block_quant_bits(type) == 4) return LinearFormat::kNibble;
  return type == WeightType::kQ8_0 ? LinearFormat::kByte : LinearFormat::kWord;
}

// The place in a group of one output's weights.
struct Lane {
  uint8_t* group;
  uint32_t lane;

  [[nodiscard]] uint8_t* chunk(uint32_t index, size_t chunk_bytes) const {
    return group + index * chunk_bytes;
  }
};

template <class T>
void store(uint8_t* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

uint32_t load32(const uint8_t* from) {
  uint32_t value = 0;
  std::memcpy(&value, from, sizeof value);
  return value;
}

void store_word(const Lane& lane, uint32_t input, int32_t weight) {
  uint8_t* chunk = lane.chunk(input / kLinearChunk, kWordChunkBytes);
  const uint32_t quad = input % kLinearChunk / 4;
  const uint32_t vector = quad * 2 + input % 2;
  store(chunk + vector * 64 + lane.lane * 4 + input % 4 / 2 * 2, static_cast<int16_t>(weight));
}

// `words` are the block's quants: byte j of word w is input 4w + j.
void store_nibbles(const Lane& lane, uint32_t block, const std::array<uint32_t, 8>& words) {
  uint8_t* to = lane.chunk(block / 2, kNibbleChunkBytes) + block % 2 * 256 + lane.lane * 4;
  for (uint32_t r = 0; r < 4; ++r) store(to + r * 64, words[2 * r] | words[2 * r + 1] << 4U);
}

// The quants of a Q4_0 or Q4_1 block stand as 16 bytes: low nibbles first, then the high ones.
std::array<uint32_t, 8> plain_nibble_words(const uint8_t* bytes) {
  constexpr uint32_t kLow = 0x0F0F0F0FU;
  std::array<uint32_t, 8> words{};
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t four = load32(bytes + 4 * i);
    words[i] = four & kLow;
    words[i + 4] = four >> 4U & kLow;
  }
  return words;
}

std::array<uint32_t, 8> nibble_words(WeightType type, const uint8_t* row, uint32_t block) {
  if (type == WeightType::kQ4_0) return plain_nibble_words(row + size_t{block} * 18 + 2);
  if (type == WeightType::kQ4_1) return plain_nibble_words(row + size_t{block} * 20 + 4);
  std::array<uint8_t, 32> quants{};
  read_block_quants(type, row, block, quants);
  std::array<uint32_t, 8> words{};
  std::memcpy(words.data(), quants.data(), sizeof words);
  return words;
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
    if (format == LinearFormat::kNibble) {
      store_nibbles(lane, b, nibble_words(type, row, b));
      uint8_t* to = lane.chunk(b / 2, kNibbleChunkBytes) + kNibbleScalesAt + b % 2 * 64;
      store(to + lane.lane * 2, static_cast<int16_t>(s.scale));
      store(to + 32 + lane.lane * 2, static_cast<int16_t>(s.offset));
      continue;
    }
    std::array<uint8_t, 32> quants{};
    read_block_quants(type, row, b, quants);
    for (uint32_t k = 0; k < 32; ++k) store_word(lane, b * 32 + k, quants[k] * s.scale + s.offset);
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
    uint8_t* chunk = lane.chunk(b / 2, kByteChunkBytes);
    const auto scale = std::lrint(scale_at(b) * units);
    store(chunk + kByteScalesAt + b % 2 * 32 + lane.lane * 2, static_cast<int16_t>(scale));
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

std::string shape(WeightType type, uint32_t n_out, uint32_t n_in) {
  return "A " + std::string(traits_of(type).name) + " weight matrix of " + std::to_string(n_out) +
         " rows of " + std::to_string(n_in);
}

}  // namespace

PackedLinear::PackedLinear(WeightType type, LinearFormat format, uint32_t n_out, uint32_t n_in)
    : type_(type),
      format_(format),
      n_out_(n_out),
      n_in_(n_in),
      data_(size_t{groups_of(n_out)} * chunks_of(n_in) * linear_chunk_bytes(format)),
      scales_(size_t{groups_of(n_out)} * kLinearLanes * sizeof(float)) {}

Result<std::unique_ptr<PackedLinear>> PackedLinear::create(WeightType type, uint32_t n_out,
                                                           uint32_t n_in) {
  if (n_out == 0 || n_in == 0 || n_out > kLinearOutputsMax || n_in > kLinearInputsMax)
    return invalid_argument(shape(type, n_out, n_in) + " weights: 1 to " +
                            std::to_string(kLinearOutputsMax) + " rows of 1 to " +
                            std::to_string(kLinearInputsMax) + " weights are supported.");
  if (n_in % traits_of(type).block_weights != 0)
    return invalid_argument(shape(type, n_out, n_in) + " weights: a row must be a multiple of " +
                            std::to_string(traits_of(type).block_weights) + " weights long.");
  std::unique_ptr<PackedLinear> packed(new PackedLinear(type, format_of(type), n_out, n_in));
  if (packed->data_.empty() || packed->scales_.empty())
    return Status{StatusCode::kResourceExhausted,
                  shape(type, n_out, n_in) +
                      " weights does not fit into memory; free some, or "
                      "take a smaller model."};
  return packed;
}

Result<std::unique_ptr<PackedLinear>> PackedLinear::pack(WeightType type, const void* matrix,
                                                         uint32_t n_out, uint32_t n_in) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<PackedLinear> packed, create(type, n_out, n_in));
  TROUPE_RETURN_IF_ERROR(packed->pack_rows(matrix, 0, n_out));
  return packed;
}

Status PackedLinear::pack_rows(const void* matrix, uint32_t row_begin, uint32_t row_end) {
  TROUPE_ASSERT(row_begin % kLinearLanes == 0, row_begin);
  TROUPE_ASSERT(row_begin <= row_end && row_end <= n_out_, row_begin, row_end, n_out_);
  const WeightTypeTraits& traits = traits_of(type_);
  const size_t row_bytes = size_t{n_in_} / traits.block_weights * traits.block_bytes;
  const size_t group_bytes = size_t{chunks_of(n_in_)} * linear_chunk_bytes(format_);
  const bool blocks = block_quant_bits(type_).has_value();
  std::vector<float> values(blocks || type_ == WeightType::kQ8_0 ? 0 : n_in_);
  std::vector<BlockScale> scales(blocks ? n_in_ / kLinearBlock : 0);
  for (uint32_t n = row_begin; n < row_end; ++n) {
    const uint8_t* row = static_cast<const uint8_t*>(matrix) + n * row_bytes;
    const Lane lane{data_.as<uint8_t>() + n / kLinearLanes * group_bytes, n % kLinearLanes};
    float* scale = scales_.as<float>() + n;
    if (blocks) {
      TROUPE_RETURN_IF_ERROR(pack_block_row(type_, format_, row, n, scales, lane, scale));
    } else if (type_ == WeightType::kQ8_0) {
      TROUPE_RETURN_IF_ERROR(pack_byte_row(row, n, n_in_ / kLinearBlock, lane, scale));
    } else {
      dequantize(type_, row, 1, n_in_, values.data());
      TROUPE_RETURN_IF_ERROR(pack_float_row(values.data(), n, n_in_, lane, scale));
    }
  }
  return ok_status();
}

LinearWeights PackedLinear::view() const {
  const uint32_t chunks = chunks_of(n_in_);
  return {.format = format_,
          .data = data_.as<const uint8_t>(),
          .group_bytes = chunks * linear_chunk_bytes(format_),
          .scales = scales_.as<const float>(),
          .n_out = n_out_,
          .chunks = chunks};
}

int32_t PackedLinear::weight(uint32_t row, uint32_t input) const {
  TROUPE_ASSERT(row < n_out_ && input < n_in_, row, n_out_, input, n_in_);
  return linear_weight(view(), row, input);
}

float PackedLinear::row_scale(uint32_t row) const {
  TROUPE_ASSERT(row < n_out_, row, n_out_);
  return scales_.as<const float>()[row];
}

}  // namespace troupe
