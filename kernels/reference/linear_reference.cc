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

// Stands in its quad at the place that linear_kernels.h prescribes: 0, 2, 1, 3.
uint32_t word_place(uint32_t input) {
  return input / 4 * 4 + input % 2 * 2 + input % 4 / 2;
}

// A weight is u * scale + offset.
struct Factors {
  int32_t scale, offset;
};
Factors factors_of(LinearFormat format, const uint8_t* chunk, uint32_t block, uint32_t lane) {
  const uint8_t* scales = chunk + linear_scales_at(format, block) + lane * 2;
  const int32_t scale = word_at(scales);
  if (format == LinearFormat::kFiveCentred) return {scale, -kFiveOffset * scale};
  if (format == LinearFormat::kByte) return {scale, -kByteOffset * scale};
  return {scale, word_at(scales + 32)};
}

// Vectors of 8 inputs: the lower four bits of u from the lane's bytes in each, the upper kBits from
// its bytes in the plane, of quad q those from bit q * kBits on.
template <uint32_t kBits>
void expand_nibbles(const uint8_t* bytes, const uint8_t* plane, uint32_t vectors, Factors f,
                    int32_t* to) {
  constexpr uint32_t kMask = (1U << kBits) - 1;
  for (uint32_t r = 0; r < vectors; ++r, bytes += 64, to += 8)
    for (uint32_t j = 0; j < 4; ++j) {
      uint32_t first = bytes[j] & 15U, second = bytes[j] >> 4U;
      if constexpr (kBits != 0) {
        first |= (plane[j] >> (2 * r * kBits) & kMask) << 4U;
        second |= (plane[j] >> ((2 * r + 1) * kBits) & kMask) << 4U;
      }
      to[word_place(j)] = static_cast<int32_t>(first) * f.scale + f.offset;
      to[word_place(j + 4)] = static_cast<int32_t>(second) * f.scale + f.offset;
    }
}

void expand_bytes(const uint8_t* bytes, Factors f, int32_t* to) {
  for (uint32_t q = 0; q < kLinearBlock / 4; ++q, bytes += 64, to += 4)
    for (uint32_t j = 0; j < 4; ++j) to[word_place(j)] = bytes[j] * f.scale + f.offset;
}

// A block of 32 inputs of all formats but kSix and kWord.
void expand_block(LinearFormat format, const uint8_t* chunk, uint32_t block, uint32_t lane,
                  int32_t* to) {
  const Factors f = factors_of(format, chunk, block, lane);
  if (format == LinearFormat::kByte) return expand_bytes(chunk + block * 512 + lane * 4, f, to);
  const uint8_t* bytes = chunk + block * 256 + lane * 4;
  if (format == LinearFormat::kNibble) return expand_nibbles<0>(bytes, nullptr, 4, f, to);
  expand_nibbles<1>(bytes, chunk + kFiveBitsAt + block * 64 + lane * 4, 4, f, to);
}

// A chunk of kSix; `scale` is its D.
void expand_six(const uint8_t* chunk, int32_t scale, uint32_t lane, int32_t* to) {
  for (uint32_t s = 0; s < kLinearChunk / kSixSub; ++s) {
    const uint8_t* sub = chunk + s * kSixSubBytes + lane * 4;
    // The factors stand in the order 0, 2, 1, 3.
    const auto factor = static_cast<int8_t>(chunk[kSixFactorsAt + lane * 4 + s % 2 * 2 + s / 2]);
    const Factors f{factor * scale, -kSixOffset * factor * scale};
    expand_nibbles<2>(sub, sub + kSixBitsAt, 2, f, to + s * kSixSub);
  }
}

// The weights of one output in one chunk, in the order of the activations' words.
void expand_chunk(LinearFormat format, const uint8_t* group, uint32_t c, uint32_t lane,
                  int32_t* to) {
  const uint8_t* chunk = group + linear_chunk_at(format, c);
  if (format == LinearFormat::kWord) {
    for (uint32_t i = 0; i < kLinearChunk; ++i) {
      const uint32_t vector = i / 4 * 2 + i % 2;
      to[word_place(i)] = word_at(chunk + vector * 64 + lane * 4 + i % 4 / 2 * 2);
    }
    return;
  }
  if (format == LinearFormat::kSix) {
    const uint8_t* super = group + c / kSixSuperChunks * kSixSuperBytes;
    return expand_six(chunk, word_at(super + kSixScalesAt + lane * 2), lane, to);
  }
  for (uint32_t b = 0; b < 2; ++b) expand_block(format, chunk, b, lane, to + b * kLinearBlock);
}

// All weights of one output.
void expand_output(const LinearWeights& w, uint32_t output, int32_t* to) {
  const uint8_t* group = w.data + output / kLinearLanes * w.group_bytes;
  for (uint32_t c = 0; c < w.chunks; ++c)
    expand_chunk(w.format, group, c, output % kLinearLanes, to + c * kLinearChunk);
}

}  // namespace

int32_t linear_weight(const LinearWeights& weights, uint32_t output, uint32_t input) {
  int32_t chunk[kLinearChunk];
  expand_chunk(weights.format, weights.data + output / kLinearLanes * weights.group_bytes,
               input / kLinearChunk, output % kLinearLanes, chunk);
  return chunk[word_place(input % kLinearChunk)];
}

int32_t linear_activation(const LinearActivations& activations, uint32_t row, uint32_t input) {
  return activations.words[row * activations.word_stride + word_place(input)];
}

void linear_scalar(const LinearCall& call) {
  const LinearActivations& a = call.activations;
  const uint32_t inputs = a.chunks * kLinearChunk;
  auto* weights = reinterpret_cast<int32_t*>(call.scratch);  // of one output
  const uint32_t first = call.group_begin * kLinearLanes;
  for (uint32_t n = first; n < call.group_end * kLinearLanes && n < call.weights.n_out; ++n) {
    expand_output(call.weights, n, weights);
    for (uint32_t m = 0; m < a.rows; ++m) {
      int64_t sum = 0;
#pragma GCC unroll 8
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
      if (!out.has_digits) continue;
      out.high[at + i] = static_cast<int8_t>(value >> kActivationDigitBits);
      out.low[at + i] = static_cast<int8_t>(value & ((1 << kActivationDigitBits) - 1));
      sum[i / kSixSub] += value;
    }
    for (int s = 0; out.has_digits && s < 4; ++s) sums[4 * c + s] = static_cast<int16_t>(sum[s]);
  }
}

}  // namespace troupe
