#pragma once
// The AVX2 kernels for weights of 8 bits with a scale per block of 32 inputs: kByte, where
// W = V * S and V = u - 128.
//
// The sum of A * V over a block fits an int32 (2047 * 128 * 32 < 2^23), but not with S, of 16 bits:
// blocks are scaled to 64 bits. For few rows u is multiplied as it stands by both digits, six
// operations for four inputs; for more V is expanded to words first, which take four.

#ifdef __AVX2__  // nothing for a compiler that was not told of it

#include "kernels/cpu/linear_avx2_vectors.h"
#include "kernels/cpu/linear_avx2_words.h"

namespace troupe {
namespace {

// S of a block.
inline __m256i byte_scales(const uint8_t* chunk, uint32_t block, uint32_t half) {
  return lanes_of(chunk + linear_scales_at(LinearFormat::kByte, block) + half * 16);
}

// R rows from m on with kByte weights. A pair sum fits an int16 (255 * 63 * 2 = 32,130); two do
// not.
template <int R>
void byte_rows(const Half& half, uint32_t m) {
  const LinearActivations& a = half.call.activations;
  const uint8_t* chunk = half.call.weights.data + half.group * half.call.weights.group_bytes;
  const __m256i ones = _mm256_set1_epi16(1);
  const __m256i digit = _mm256_set1_epi16(1 << kActivationDigitBits);
  const size_t step = size_t{a.tile_rows} * kLinearChunk;
  ScaledSums sums[R];
  for (uint32_t c = 0; c < a.chunks; ++c, chunk += kByteChunkBytes) {
    prefetch_next<kByteChunkBytes>(half, chunk);
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
      const __m256i scale = byte_scales(chunk, b, half.half);
#pragma GCC unroll 4
      for (int i = 0; i < R; ++i) sums[i].add(dot[i], scale);
    }
  }
  for (int i = 0; i < R; ++i) store_even_odd(half, m + i, sums[i].even, sums[i].odd);
}

inline void byte_half(const Half& half) {
  switch (half.call.activations.rows) {
    case 1:
      return byte_rows<1>(half, 0);
    case 2:
      return byte_rows<2>(half, 0);
    case 3:
      return byte_rows<3>(half, 0);
    default:
      return byte_rows<4>(half, 0);
  }
}

// V of one group as words; S is left to the sums.
inline void expand_bytes(const uint8_t* chunk, uint32_t chunks, uint8_t* words) {
  const __m256i byte = _mm256_set1_epi16(255);
  const __m256i offset = _mm256_set1_epi16(kByteOffset);
  for (uint32_t c = 0; c < chunks; ++c, chunk += kByteChunkBytes) {
    prefetch_lines<kByteChunkBytes / 64>(chunk + chunks * kByteChunkBytes);  // of the next group
    for (uint32_t quad = 0; quad < kLinearChunk / 4; ++quad, words += 128)
      for (uint32_t h = 0; h < 64; h += 32) {
        const __m256i u = load(chunk + quad * 64 + h);
        store(words + h, _mm256_sub_epi16(_mm256_and_si256(u, byte), offset));
        store(words + h + 64, _mm256_sub_epi16(_mm256_srli_epi16(u, 8), offset));
      }
  }
}

// R rows from m on with V as words, both halves.
template <int R>
void byte_word_rows(const LinearCall& call, const uint8_t* words, uint32_t group, uint32_t m) {
  const LinearWeights& w = call.weights;
  const uint8_t* chunk = w.data + group * w.group_bytes;
  ScaledSums sums[R][2];
  for (uint32_t c = 0; c < w.chunks; ++c, chunk += kByteChunkBytes)
    for (uint32_t b = 0; b < 2; ++b) {
      __m256i dot[R][2];
#pragma GCC unroll 4
      for (int i = 0; i < R; ++i) dot[i][0] = dot[i][1] = _mm256_setzero_si256();
      add_words<R, kLinearBlock>(call.activations, words, m, c * kLinearChunk + b * kLinearBlock,
                                 dot);
      for (uint32_t h = 0; h < 2; ++h) {
        const __m256i scale = byte_scales(chunk, b, h);
        for (int i = 0; i < R; ++i) sums[i][h].add(dot[i][h], scale);
      }
    }
  for (int i = 0; i < R; ++i)
    for (uint32_t h = 0; h < 2; ++h)
      store_even_odd({call, group, h}, m + i, sums[i][h].even, sums[i][h].odd);
}

struct ByteWords {
  template <int R>
  static void rows(const LinearCall& call, const uint8_t* words, uint32_t group, uint32_t m) {
    byte_word_rows<R>(call, words, group, m);
  }
};

}  // namespace
}  // namespace troupe

#endif  // __AVX2__
