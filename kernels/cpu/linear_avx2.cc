// The linear layer for AVX2: the kernel for kByte weights, and which kernel serves which call.

#include "kernels/cpu/linear_avx2_blocks.h"
#include "kernels/cpu/linear_avx2_six.h"
#include "kernels/cpu/linear_avx2_words.h"

namespace troupe {
namespace {

// Up to this number of rows weights are used as they stand; above, they are expanded to words
// first.
constexpr uint32_t kFewRows = 4;

// R rows from m on with kByte weights. A pair sum fits an int16 (255 * 63 * 2 = 32,130); two do
// not.
template <int R>
void byte_rows(const Half& half, uint32_t m) {
  const LinearActivations& a = half.call.activations;
  const uint8_t* chunk = half.call.weights.data + half.group * half.call.weights.group_bytes;
  const __m256i ones = _mm256_set1_epi16(1);
  const __m256i digit = _mm256_set1_epi16(1 << kActivationDigitBits);
  const size_t step = size_t{a.tile_rows} * kLinearChunk;
  __m256i even[R], odd[R];
  for (int i = 0; i < R; ++i) even[i] = odd[i] = _mm256_setzero_si256();
  for (uint32_t c = 0; c < a.chunks; ++c, chunk += kByteChunkBytes)
    for (uint32_t b = 0; b < 2; ++b) {
      __m256i dot[R];
#pragma GCC unroll 4
      for (int i = 0; i < R; ++i)
        dot[i] = _mm256_madd_epi16(broadcast(a.sums + (m + i) * a.sum_stride + 4 * c + 2 * b),
                                   _mm256_set1_epi16(-kByteOffset));
      for (uint32_t r = 0; r < 8; ++r) {
        const __m256i u = load(chunk + b * 512 + r * 64 + half.half * 32);
#pragma GCC unroll 4
        for (int i = 0; i < R; ++i) {
          const size_t at = digits_at(a, m + i) + c * step + b * 32 + r * 4;
          const __m256i h = _mm256_maddubs_epi16(u, broadcast(a.high + at));
          const __m256i l = _mm256_maddubs_epi16(u, broadcast(a.low + at));
          dot[i] = _mm256_add_epi32(dot[i], _mm256_madd_epi16(h, digit));
          dot[i] = _mm256_add_epi32(dot[i], _mm256_madd_epi16(l, ones));
        }
      }
      const __m256i scale = lanes_of(chunk + kByteScalesAt + b * 32 + half.half * 16);
      const __m256i odd_scale = _mm256_srli_epi64(scale, 32);
#pragma GCC unroll 4
      for (int i = 0; i < R; ++i) {
        even[i] = _mm256_add_epi64(even[i], _mm256_mul_epi32(dot[i], scale));
        const __m256i odd_dot = _mm256_srli_epi64(dot[i], 32);
        odd[i] = _mm256_add_epi64(odd[i], _mm256_mul_epi32(odd_dot, odd_scale));
      }
    }
  for (int i = 0; i < R; ++i) store_even_odd(half, m + i, even[i], odd[i]);
}

void byte_half(const Half& half) {
  const uint32_t rows = half.call.activations.rows;
  for (uint32_t m = 0; m < rows; m += kRows) switch (rows - m) {
      case 1:
        return byte_rows<1>(half, m);
      case 2:
        return byte_rows<2>(half, m);
      case 3:
        return byte_rows<3>(half, m);
      default:
        byte_rows<kRows>(half, m);
    }
}

// Few rows, and kByte whatever their number: weights are used as they stand.
void packed_half(const Half& half) {
  switch (half.call.weights.format) {
    case LinearFormat::kNibble:
      return block_half<LinearFormat::kNibble>(half);
    case LinearFormat::kFive:
      return block_half<LinearFormat::kFive>(half);
    case LinearFormat::kFiveCentred:
      return block_half<LinearFormat::kFiveCentred>(half);
    case LinearFormat::kSix:
      return six_half(half);
    default:
      return byte_half(half);
  }
}

void word_group(const LinearCall& call, uint32_t group) {
  const LinearWeights& w = call.weights;
  const uint8_t* packed = w.data + group * w.group_bytes;
  switch (w.format) {
    case LinearFormat::kNibble:
      expand_blocks<LinearFormat::kNibble>(packed, w.chunks, call.scratch);
      break;
    case LinearFormat::kFive:
      expand_blocks<LinearFormat::kFive>(packed, w.chunks, call.scratch);
      break;
    case LinearFormat::kFiveCentred:
      expand_blocks<LinearFormat::kFiveCentred>(packed, w.chunks, call.scratch);
      break;
    case LinearFormat::kSix:
      expand_sixes(packed, w.chunks, call.scratch);
      return word_rows_of_group<SixWords>(call, call.scratch, group);
    default:
      return word_rows_of_group<PlainWords>(call, packed, group);
  }
  word_rows_of_group<PlainWords>(call, call.scratch, group);
}

}  // namespace

void linear_avx2(const LinearCall& call) {
  const LinearFormat format = call.weights.format;
  const bool few = format != LinearFormat::kWord && call.activations.rows <= kFewRows;
  for (uint32_t g = call.group_begin; g < call.group_end; ++g) {
    if (!few && format != LinearFormat::kByte) {
      word_group(call, g);
      continue;
    }
    for (uint32_t h = 0; h < 2; ++h) packed_half({call, g, h});
  }
}

}  // namespace troupe
