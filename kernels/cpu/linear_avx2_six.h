#pragma once
// The AVX2 kernels for weights of 6 bits: W = V * D, where V = (u - 32) * T has 13 bits and D holds
// for 256 inputs. An int32 holds the sum of A * V over those (2,146,435,072).

#ifdef __AVX2__  // nothing for a compiler that was not told of it

#include "kernels/cpu/linear_avx2_words.h"

namespace troupe {
namespace {

// T of a chunk's sub-blocks: [0] has pairs of those of sub-blocks 0 and 1, [1] of 2 and 3.
inline void six_factors(const uint8_t* chunk, uint32_t half, __m256i pairs[2]) {
  const __m256i bytes = load(chunk + kSixFactorsAt + half * 32);
  pairs[0] = _mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8);
  pairs[1] = _mm256_srai_epi16(bytes, 8);
}

// Factor `which` of each pair, twice.
inline __m256i both(__m256i pairs, uint32_t which) {
  return which == 0 ? _mm256_blend_epi16(pairs, _mm256_slli_epi32(pairs, 16), 0xAA)
                    : _mm256_blend_epi16(_mm256_srli_epi32(pairs, 16), pairs, 0xAA);
}

// Vector `index` of a sub-block as two quads of bytes; the plane is moved on as they are taken.
inline void next_six_quants(const uint8_t* vector, __m256i& plane, __m256i& first,
                            __m256i& second) {
  const __m256i raw = load(vector);
  const __m256i mask = _mm256_set1_epi8(15);
  const __m256i upper = _mm256_set1_epi8(48);
  first = _mm256_or_si256(_mm256_and_si256(raw, mask),
                          _mm256_and_si256(_mm256_slli_epi16(plane, 4), upper));
  second = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(raw, 4), mask),
                           _mm256_and_si256(_mm256_slli_epi16(plane, 2), upper));
  plane = _mm256_srli_epi16(plane, 4);
}

// Sums over 256 inputs: of A times u times T, and of A times T.
template <int R>
struct SixSums {
  __m256i dot[R], offset[R];
};

// The pair sums of 16 inputs fit an int16 (63 * 63 * 2 * 4 = 31,752), and 64 * T does.
template <int R>
void add_six_chunk(const Half& half, const uint8_t* chunk, uint32_t m, uint32_t c,
                   SixSums<R>& sums) {
  const LinearActivations& a = half.call.activations;
  __m256i factors[2];
  six_factors(chunk, half.half, factors);
  for (uint32_t s = 0; s < 4; ++s) {
    const uint8_t* sub = chunk + s * kSixSubBytes + half.half * 32;
    __m256i h[R], l[R];
#pragma GCC unroll 4
    for (int i = 0; i < R; ++i) h[i] = l[i] = _mm256_setzero_si256();
    __m256i plane = load(sub + kSixBitsAt);
    for (uint32_t r = 0; r < 2; ++r) {
      __m256i first, second;
      next_six_quants(sub + r * 64, plane, first, second);
#pragma GCC unroll 4
      for (int i = 0; i < R; ++i) {
        const size_t at =
            digits_at(a, m + i) + c * size_t{a.tile_rows} * kLinearChunk + s * kSixSub + r * 8;
        h[i] = _mm256_add_epi16(h[i], _mm256_maddubs_epi16(first, broadcast(a.high + at)));
        l[i] = _mm256_add_epi16(l[i], _mm256_maddubs_epi16(first, broadcast(a.low + at)));
        h[i] = _mm256_add_epi16(h[i], _mm256_maddubs_epi16(second, broadcast(a.high + at + 4)));
        l[i] = _mm256_add_epi16(l[i], _mm256_maddubs_epi16(second, broadcast(a.low + at + 4)));
      }
    }
    const __m256i factor = both(factors[s / 2], s % 2);
    const __m256i high_factor = _mm256_slli_epi16(factor, kActivationDigitBits);
#pragma GCC unroll 4
    for (int i = 0; i < R; ++i) {
      sums.dot[i] = _mm256_add_epi32(sums.dot[i], _mm256_madd_epi16(h[i], high_factor));
      sums.dot[i] = _mm256_add_epi32(sums.dot[i], _mm256_madd_epi16(l[i], factor));
    }
    if (s % 2 == 0) continue;
#pragma GCC unroll 4
    for (int i = 0; i < R; ++i) {
      const __m256i pair = broadcast(a.sums + (m + i) * a.sum_stride + 4 * c + s / 2 * 2);
      sums.offset[i] = _mm256_add_epi32(sums.offset[i], _mm256_madd_epi16(pair, factors[s / 2]));
    }
  }
}

// R rows from m on.
template <int R>
void six_rows(const Half& half, uint32_t m) {
  const LinearWeights& w = half.call.weights;
  const uint8_t* super = w.data + half.group * w.group_bytes;
  ScaledSums wide[R];
  for (uint32_t c = 0; c < w.chunks; c += kSixSuperChunks, super += kSixSuperBytes) {
    SixSums<R> sums;
    for (int i = 0; i < R; ++i) sums.dot[i] = sums.offset[i] = _mm256_setzero_si256();
    for (uint32_t i = 0; i < kSixSuperChunks; ++i) {
      prefetch_next<kSixChunkBytes>(half, super + i * kSixChunkBytes);
      add_six_chunk(half, super + i * kSixChunkBytes, m, c + i, sums);
    }
    const __m256i scale = lanes_of(super + kSixScalesAt + half.half * 16);
    static_assert(kSixOffset == 1 << 5);
    for (int i = 0; i < R; ++i)
      wide[i].add(_mm256_sub_epi32(sums.dot[i], _mm256_slli_epi32(sums.offset[i], 5)), scale);
  }
  for (int i = 0; i < R; ++i) store_even_odd(half, m + i, wide[i].even, wide[i].odd);
}

inline void six_half(const Half& half) {
  switch (half.call.activations.rows) {
    case 1:
      return six_rows<1>(half, 0);
    case 2:
      return six_rows<2>(half, 0);
    case 3:
      return six_rows<3>(half, 0);
    default:
      return six_rows<4>(half, 0);
  }
}

// V of one group as words; D is left to the sums.
inline void expand_sixes(const uint8_t* group, uint32_t chunks, uint8_t* words) {
  const __m256i byte = _mm256_set1_epi16(255);
  for (uint32_t c = 0; c < chunks; ++c)
    for (uint32_t h = 0; h < 2; ++h) {
      const uint8_t* chunk = group + linear_chunk_at(LinearFormat::kSix, c);
      __m256i factors[2];
      six_factors(chunk, h, factors);
      for (uint32_t s = 0; s < 4; ++s) {
        const uint8_t* sub = chunk + s * kSixSubBytes + h * 32;
        const __m256i factor = both(factors[s / 2], s % 2);
        const __m256i offset =
            _mm256_sub_epi16(_mm256_setzero_si256(), _mm256_slli_epi16(factor, 5));
        __m256i plane = load(sub + kSixBitsAt);
        for (uint32_t r = 0; r < 2; ++r) {
          __m256i first, second;
          next_six_quants(sub + r * 64, plane, first, second);
          const __m256i quants[4] = {_mm256_and_si256(first, byte), _mm256_srli_epi16(first, 8),
                                     _mm256_and_si256(second, byte), _mm256_srli_epi16(second, 8)};
          uint8_t* to = words + c * kWordChunkBytes + s * 512 + r * 256 + h * 32;
          for (int i = 0; i < 4; ++i)
            store(to + i * 64, _mm256_add_epi16(_mm256_mullo_epi16(quants[i], factor), offset));
        }
      }
    }
}

// R rows from m on with V as words, both halves.
template <int R>
void six_word_rows(const LinearCall& call, const uint8_t* words, uint32_t group, uint32_t m) {
  const LinearWeights& w = call.weights;
  const uint8_t* super = w.data + group * w.group_bytes;
  ScaledSums wide[R][2];
  for (uint32_t c = 0; c < w.chunks; c += kSixSuperChunks, super += kSixSuperBytes) {
    __m256i dot[R][2];
#pragma GCC unroll 4
    for (int i = 0; i < R; ++i) dot[i][0] = dot[i][1] = _mm256_setzero_si256();
    add_words<R, kSixSuper>(call.activations, words, m, c * kLinearChunk, dot);
    for (uint32_t h = 0; h < 2; ++h) {
      const __m256i scale = lanes_of(super + kSixScalesAt + h * 16);
      for (int i = 0; i < R; ++i) wide[i][h].add(dot[i][h], scale);
    }
  }
  for (int i = 0; i < R; ++i)
    for (uint32_t h = 0; h < 2; ++h)
      store_even_odd({call, group, h}, m + i, wide[i][h].even, wide[i][h].odd);
}

struct SixWords {
  template <int R>
  static void rows(const LinearCall& call, const uint8_t* words, uint32_t group, uint32_t m) {
    six_word_rows<R>(call, words, group, m);
  }
};

}  // namespace
}  // namespace troupe

#endif  // __AVX2__
