#include "kernels/reference/linear_reference.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace troupe {
namespace {

int32_t word_at(const uint8_t* bytes) {
  int16_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

// The lower four bits of an input: `vectors` are those of its sub-block or block.
uint32_t nibble_at(const uint8_t* vectors, uint32_t lane, uint32_t input) {
  return vectors[input / 8 * 64 + lane * 4 + input % 4] >> (input % 8 / 4 * 4) & 15U;
}

int32_t nibble_quant(const uint8_t* chunk, uint32_t lane, uint32_t input) {
  return static_cast<int32_t>(nibble_at(chunk, lane, input));
}

int32_t five_quant(const uint8_t* chunk, uint32_t lane, uint32_t input) {
  const uint32_t block = input / kLinearBlock, in_block = input % kLinearBlock;
  const uint32_t plane = chunk[kFiveBitsAt + block * 64 + lane * 4 + input % 4];
  const uint32_t fifth = plane >> (in_block / 4) & 1U;
  return static_cast<int32_t>(nibble_at(chunk, lane, input) | fifth << 4U);
}

int32_t byte_quant(const uint8_t* chunk, uint32_t lane, uint32_t input) {
  return chunk[input / 4 * 64 + lane * 4 + input % 4];
}

// V of kSix.
int32_t six_factor(const uint8_t* chunk, uint32_t lane, uint32_t input) {
  const uint32_t index = input / kSixSub, in_sub = input % kSixSub;
  const uint8_t* sub = chunk + index * kSixSubBytes;
  const uint32_t plane = sub[kSixBitsAt + lane * 4 + input % 4];
  const uint32_t upper = plane >> (in_sub / 4 * 2) & 3U;
  const auto u = static_cast<int32_t>(nibble_at(sub, lane, in_sub) | upper << 4U);
  // The factors stand in the order 0, 2, 1, 3.
  const uint8_t factor = chunk[kSixFactorsAt + lane * 4 + index % 2 * 2 + index / 2];
  return (u - kSixOffset) * static_cast<int8_t>(factor);
}

int32_t word_weight(const uint8_t* chunk, uint32_t lane, uint32_t input) {
  const uint32_t vector = input / 4 * 2 + input % 2;
  return word_at(chunk + vector * 64 + lane * 4 + input % 4 / 2 * 2);
}

// Stands in its quad at the place that linear_kernels.h prescribes: 0, 2, 1, 3.
uint32_t word_place(uint32_t input) {
  return input / 4 * 4 + input % 2 * 2 + input % 4 / 2;
}

// Of a block, where a weight is u * scale + offset; nothing of kSix and kWord.
struct BlockFactors {
  int32_t scale = 0, offset = 0;
};
BlockFactors factors_of(LinearFormat format, const uint8_t* chunk, uint32_t block, uint32_t lane) {
  if (format == LinearFormat::kWord || format == LinearFormat::kSix) return {};
  const uint8_t* scales = chunk + linear_scales_at(format, block) + lane * 2;
  const int32_t scale = word_at(scales);
  if (format == LinearFormat::kFiveCentred) return {scale, -kFiveOffset * scale};
  if (format == LinearFormat::kByte) return {scale, -kByteOffset * scale};
  return {scale, word_at(scales + 32)};
}

// D of kSix, of the chunk's 256 inputs.
const uint8_t* six_scales_of(const uint8_t* group, uint32_t chunk) {
  return group + chunk / kSixSuperChunks * kSixSuperBytes + kSixScalesAt;
}

}  // namespace

int32_t linear_weight(const LinearWeights& weights, uint32_t output, uint32_t input) {
  const uint8_t* group = weights.data + output / kLinearLanes * weights.group_bytes;
  const uint32_t c = input / kLinearChunk;
  const uint8_t* chunk = group + linear_chunk_at(weights.format, c);
  const uint32_t lane = output % kLinearLanes;
  const uint32_t in_chunk = input % kLinearChunk;
  const BlockFactors f = factors_of(weights.format, chunk, in_chunk / kLinearBlock, lane);
  switch (weights.format) {
    case LinearFormat::kNibble:
      return nibble_quant(chunk, lane, in_chunk) * f.scale + f.offset;
    case LinearFormat::kFive:
    case LinearFormat::kFiveCentred:
      return five_quant(chunk, lane, in_chunk) * f.scale + f.offset;
    case LinearFormat::kByte:
      return byte_quant(chunk, lane, in_chunk) * f.scale + f.offset;
    case LinearFormat::kSix:
      return six_factor(chunk, lane, in_chunk) * word_at(six_scales_of(group, c) + lane * 2);
    case LinearFormat::kWord:
      break;
  }
  return word_weight(chunk, lane, in_chunk);
}

int32_t linear_activation(const LinearActivations& activations, uint32_t row, uint32_t input) {
  return activations.words[row * activations.word_stride + word_place(input)];
}

namespace {

// The weights of a chunk in the order of the activations' words: linear_weight(), but with the
// factors read once per block.
template <class Quant>
void expand_blocks(LinearFormat format, const uint8_t* chunk, uint32_t lane, Quant quant,
                   int32_t* to) {
  for (uint32_t b = 0; b < 2; ++b) {
    const BlockFactors f = factors_of(format, chunk, b, lane);
    for (uint32_t i = b * kLinearBlock; i < (b + 1) * kLinearBlock; ++i)
      to[word_place(i)] = quant(chunk, lane, i) * f.scale + f.offset;
  }
}

void expand_chunk(LinearFormat format, const uint8_t* group, uint32_t c, uint32_t lane,
                  int32_t* to) {
  const uint8_t* chunk = group + linear_chunk_at(format, c);
  switch (format) {
    case LinearFormat::kNibble:
      return expand_blocks(format, chunk, lane, nibble_quant, to);
    case LinearFormat::kFive:
    case LinearFormat::kFiveCentred:
      return expand_blocks(format, chunk, lane, five_quant, to);
    case LinearFormat::kByte:
      return expand_blocks(format, chunk, lane, byte_quant, to);
    case LinearFormat::kSix: {
      const int32_t scale = word_at(six_scales_of(group, c) + lane * 2);
      for (uint32_t i = 0; i < kLinearChunk; ++i)
        to[word_place(i)] = six_factor(chunk, lane, i) * scale;
      return;
    }
    case LinearFormat::kWord:
      break;
  }
  for (uint32_t i = 0; i < kLinearChunk; ++i) to[word_place(i)] = word_weight(chunk, lane, i);
}

// All weights of one output.
void expand_output(const LinearWeights& w, uint32_t output, int32_t* to) {
  const uint8_t* group = w.data + output / kLinearLanes * w.group_bytes;
  for (uint32_t c = 0; c < w.chunks; ++c)
    expand_chunk(w.format, group, c, output % kLinearLanes, to + c * kLinearChunk);
}

}  // namespace

void linear_scalar(const LinearCall& call) {
  const LinearActivations& a = call.activations;
  const uint32_t inputs = a.chunks * kLinearChunk;
  auto* weights = reinterpret_cast<int32_t*>(call.scratch);  // of one output
  const uint32_t first = call.group_begin * kLinearLanes;
  for (uint32_t n = first; n < call.group_end * kLinearLanes && n < call.weights.n_out; ++n) {
    expand_output(call.weights, n, weights);
    for (uint32_t m = 0; m < a.rows; ++m) {
      int64_t sum = 0;
      for (uint32_t k = 0; k < inputs; ++k)
        sum += int64_t{a.words[m * a.word_stride + k]} * weights[k];
      const double scale =
          static_cast<double>(a.scales[m]) * static_cast<double>(call.weights.scales[n]);
      call.out[m * call.out_stride + n - first] =
          static_cast<float>(static_cast<double>(sum) * scale);
    }
  }
}

void quantize_row_scalar(const float* x, uint32_t n_in, const LinearActivations& out,
                         uint32_t row) {
  constexpr uint32_t kInfinity = 0x7F800000;
  constexpr float kSmallestMax = 0x1p-100F;
  // Bit patterns of absolute values are ordered like the values, NaN above infinity.
  uint32_t max_bits = 0;
  for (uint32_t k = 0; k < n_in; ++k) {
    const uint32_t bits = std::bit_cast<uint32_t>(x[k]) & 0x7FFFFFFFU;
    max_bits = bits > max_bits ? bits : max_bits;
  }
  const auto max = std::bit_cast<float>(max_bits);
  const bool finite = max_bits < kInfinity;
  const bool zero = !finite || max < kSmallestMax;
  const float inverse = zero ? 0.0F : static_cast<float>(kActivationMax) / max;
  out.scales[row] = !finite ? std::numeric_limits<float>::quiet_NaN()
                    : zero  ? 0.0F
                            : max / static_cast<float>(kActivationMax);
  int16_t* words = out.words + row * out.word_stride;
  int16_t* sums = out.sums + row * out.sum_stride;
  for (uint32_t c = 0; c < out.chunks; ++c) {
    const size_t at = row / out.tile_rows * out.tile_stride +
                      (size_t{c} * out.tile_rows + row % out.tile_rows) * kLinearChunk;
    int32_t sum[4] = {0, 0, 0, 0};
    for (uint32_t i = 0; i < kLinearChunk; ++i) {
      const uint32_t k = c * kLinearChunk + i;
      // lrint rounds to nearest even, the default of every thread.
      const auto value = zero || k >= n_in ? 0 : static_cast<int32_t>(std::lrint(x[k] * inverse));
      words[word_place(k)] = static_cast<int16_t>(value);
      out.high[at + i] = static_cast<int8_t>(value >> kActivationDigitBits);
      out.low[at + i] = static_cast<int8_t>(value & ((1 << kActivationDigitBits) - 1));
      sum[i / kSixSub] += value;
    }
    for (int s = 0; s < 4; ++s) sums[4 * c + s] = static_cast<int16_t>(sum[s]);
  }
}

}  // namespace troupe
