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

int32_t nibble_weight(const uint8_t* chunk, uint32_t lane, uint32_t input) {
  const uint32_t block = input / kLinearBlock;
  const uint32_t octet = input % kLinearBlock / 8;
  const uint32_t byte = chunk[block * 256 + octet * 64 + lane * 4 + input % 4];
  const auto q = static_cast<int32_t>(byte >> (input % 8 / 4 * 4) & 15U);
  const uint8_t* scales = chunk + kNibbleScalesAt + block * 64 + lane * 2;
  return q * word_at(scales) + word_at(scales + 32);
}

int32_t byte_weight(const uint8_t* chunk, uint32_t lane, uint32_t input) {
  const uint32_t block = input / kLinearBlock;
  const uint8_t u = chunk[block * 512 + input % kLinearBlock / 4 * 64 + lane * 4 + input % 4];
  return (int32_t{u} - kByteOffset) * word_at(chunk + kByteScalesAt + block * 32 + lane * 2);
}

int32_t word_weight(const uint8_t* chunk, uint32_t lane, uint32_t input) {
  const uint32_t vector = input / 4 * 2 + input % 2;
  return word_at(chunk + vector * 64 + lane * 4 + input % 4 / 2 * 2);
}

// Stands in its quad at the place that linear_kernels.h prescribes: 0, 2, 1, 3.
uint32_t word_place(uint32_t input) {
  return input / 4 * 4 + input % 2 * 2 + input % 4 / 2;
}

}  // namespace

int32_t linear_weight(const LinearWeights& weights, uint32_t output, uint32_t input) {
  const uint8_t* chunk = weights.data + output / kLinearLanes * weights.group_bytes +
                         input / kLinearChunk * linear_chunk_bytes(weights.format);
  const uint32_t lane = output % kLinearLanes;
  const uint32_t in_chunk = input % kLinearChunk;
  switch (weights.format) {
    case LinearFormat::kNibble:
      return nibble_weight(chunk, lane, in_chunk);
    case LinearFormat::kByte:
      return byte_weight(chunk, lane, in_chunk);
    case LinearFormat::kWord:
      break;
  }
  return word_weight(chunk, lane, in_chunk);
}

int32_t linear_activation(const LinearActivations& activations, uint32_t row, uint32_t input) {
  return activations.words[row * activations.word_stride + word_place(input)];
}

namespace {

// A weight is u * scale + offset, with these of its block.
struct BlockFactors {
  int32_t scale, offset;
};
BlockFactors factors_of(LinearFormat format, const uint8_t* chunk, uint32_t block, uint32_t lane) {
  if (format == LinearFormat::kNibble) {
    const uint8_t* scales = chunk + kNibbleScalesAt + block * 64 + lane * 2;
    return {word_at(scales), word_at(scales + 32)};
  }
  const int32_t scale = word_at(chunk + kByteScalesAt + block * 32 + lane * 2);
  return {scale, -kByteOffset * scale};
}

// Eight inputs of one output from the bytes of a nibble vector, four from a byte vector.
void expand_nibbles(const uint8_t* bytes, BlockFactors f, int32_t* to) {
  for (uint32_t j = 0; j < 4; ++j) {
    to[word_place(j)] = (bytes[j] & 15) * f.scale + f.offset;
    to[word_place(j + 4)] = (bytes[j] >> 4) * f.scale + f.offset;
  }
}
void expand_bytes(const uint8_t* bytes, BlockFactors f, int32_t* to) {
  for (uint32_t j = 0; j < 4; ++j) to[word_place(j)] = bytes[j] * f.scale + f.offset;
}

// All weights of one output in the order of the activations' words: linear_weight(), block by
// block.
void expand_output(const LinearWeights& w, uint32_t output, int32_t* to) {
  const uint32_t lane = output % kLinearLanes;
  const size_t chunk_bytes = linear_chunk_bytes(w.format);
  const uint8_t* chunk = w.data + output / kLinearLanes * w.group_bytes;
  for (uint32_t c = 0; c < w.chunks; ++c, chunk += chunk_bytes, to += kLinearChunk) {
    if (w.format == LinearFormat::kWord) {
      for (uint32_t i = 0; i < kLinearChunk; ++i) to[word_place(i)] = word_weight(chunk, lane, i);
      continue;
    }
    const uint8_t* bytes = chunk + lane * 4;
    for (uint32_t b = 0; b < 2; ++b) {
      const BlockFactors f = factors_of(w.format, chunk, b, lane);
      int32_t* block = to + b * kLinearBlock;
      if (w.format == LinearFormat::kNibble) {
        for (uint32_t r = 0; r < 4; ++r, bytes += 64) expand_nibbles(bytes, f, block + 8 * r);
      } else {
        for (uint32_t r = 0; r < 8; ++r, bytes += 64) expand_bytes(bytes, f, block + 4 * r);
      }
    }
  }
}

}  // namespace

void linear_scalar(const LinearCall& call) {
  const LinearActivations& a = call.activations;
  const uint32_t inputs = a.chunks * kLinearChunk;
  auto* weights = reinterpret_cast<int32_t*>(call.scratch);  // of one output
  for (uint32_t n = call.group_begin * kLinearLanes;
       n < call.group_end * kLinearLanes && n < call.weights.n_out; ++n) {
    expand_output(call.weights, n, weights);
    for (uint32_t m = 0; m < a.rows; ++m) {
      int64_t sum = 0;
      for (uint32_t k = 0; k < inputs; ++k)
        sum += int64_t{a.words[m * a.word_stride + k]} * weights[k];
      const double scale =
          static_cast<double>(a.scales[m]) * static_cast<double>(call.weights.scales[n]);
      call.out[m * call.out_stride + n] = static_cast<float>(static_cast<double>(sum) * scale);
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
    int32_t sum[2] = {0, 0};
    for (uint32_t i = 0; i < kLinearChunk; ++i) {
      const uint32_t k = c * kLinearChunk + i;
      // lrint rounds to nearest even, the default of every thread.
      const auto value = zero || k >= n_in ? 0 : static_cast<int32_t>(std::lrint(x[k] * inverse));
      words[word_place(k)] = static_cast<int16_t>(value);
      out.high[at + i] = static_cast<int8_t>(value >> kActivationDigitBits);
      out.low[at + i] = static_cast<int8_t>(value & ((1 << kActivationDigitBits) - 1));
      sum[i / kLinearBlock] += value;
    }
    for (int b = 0; b < 2; ++b) {
      sums[4 * c + 2 * b] = static_cast<int16_t>(sum[b] >> 1);
      sums[4 * c + 2 * b + 1] = static_cast<int16_t>(sum[b] - (sum[b] >> 1));
    }
  }
}

}  // namespace troupe
