#pragma once
// The AVX-512 kernels for weights of 6 bits: W = V * D, where V = (u - 32) * T has 13 bits and D
// holds for 256 inputs.
//
// An int32 holds the sum of A * V over those 256 inputs (2,146,435,072), whose parts may wrap on
// the way; only their products with D need 64 bits.

#ifdef __AVX512BW__  // nothing for a compiler that was not told of it

#include "kernels/cpu/linear_avx512_digits.h"
#include "kernels/cpu/linear_avx512_quants.h"
#include "kernels/cpu/linear_avx512_words.h"

namespace troupe {
namespace {

constexpr int kSixRows = 4;
// Sums of u * low begin here, so that those over 16 inputs (63 * 63 * 16 = 63,504) fit an int16.
constexpr int kSixLowStart = -63 * 63 * 8;

// Of R rows over 256 inputs: sums of the digits times u times T; `offset` those of A times T.
template <int R>
struct SixSums {
  __m512i high[R], low[R], offset[R];
};

// One chunk of kSix weights.
template <int R>
inline void add_six_chunk(const RowDigits<R>& x, const uint8_t* chunk, SixSums<R>& sums,
                          __m512i& start) {
  __m512i factors[2];
  six_factors(chunk, factors);
#pragma GCC unroll 2
  for (int b = 0; b < 2; ++b) {
    start = add_word_products(start, factors[b], _mm512_set1_epi16(-kSixLowStart));
#pragma GCC unroll 2
    for (int s = 0; s < 2; ++s) {
      __m512i h[R], l[R], u[4];
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i) {
        h[i] = _mm512_setzero_si512();
        l[i] = _mm512_set1_epi32(kSixLowStart);
      }
      six_quants(chunk + (2 * b + s) * kSixSubBytes, u);
      add_quads(x, b * 32 + s * 16, u, h, l);
      const __m512i factor = s == 0 ? _mm512_and_si512(factors[b], _mm512_set1_epi32(0xFFFF))
                                    : _mm512_srli_epi32(factors[b], 16);
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i) {
        sums.high[i] = add_word_products(sums.high[i], h[i], factor);
        sums.low[i] = add_word_products(sums.low[i], l[i], factor);
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i)
      sums.offset[i] = add_word_products(sums.offset[i], factors[b], x.sum(i, b));
  }
}

// R rows from m on, one group.
template <int R>
void six_rows(const LinearCall& call, uint32_t group, uint32_t m, NextGroups& next) {
  const LinearActivations& a = call.activations;
  const uint8_t* super = call.weights.data + group * call.weights.group_bytes;
  ScaledSums wide[R];
  for (uint32_t c = 0; c < a.chunks; c += kSixSuperChunks, super += kSixSuperBytes) {
    SixSums<R> sums;
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i)
      sums.high[i] = sums.low[i] = sums.offset[i] = _mm512_setzero_si512();
    __m512i start = _mm512_setzero_si512();
#pragma GCC unroll 1
    for (uint32_t i = 0; i < kSixSuperChunks; ++i) {
      next.prefetch_with<kSixChunkBytes, 1>(super + i * kSixChunkBytes);
      add_six_chunk(RowDigits<R>(a, m, c + i), super + i * kSixChunkBytes, sums, start);
    }
    const __m512i scale = lanes_of(super + kSixScalesAt);
    const __m512i odd_scale = _mm512_srli_epi64(scale, 32);
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
      static_assert(kSixOffset == 1 << 5);
      const __m512i low = _mm512_sub_epi32(_mm512_add_epi32(sums.low[i], start),
                                           _mm512_slli_epi32(sums.offset[i], 5));
      const __m512i high = _mm512_slli_epi32(sums.high[i], kActivationDigitBits);
      wide[i].add(_mm512_add_epi32(high, low), scale, odd_scale);
    }
  }
  const GroupOutputs to(call, group);
  for (int i = 0; i < R; ++i) store_even_odd(to, m + i, wide[i].even, wide[i].odd);
}

inline void six_group(const LinearCall& call, uint32_t group) {
  NextGroups next(call, group + 1, 1, kSixRows);
  for_row_blocks(call.activations.rows, kSixRows, [&](uint32_t m, uint32_t rows) {
    switch (rows) {
      case 1:
        return six_rows<1>(call, group, m, next);
      case 2:
        return six_rows<2>(call, group, m, next);
      case 3:
        return six_rows<3>(call, group, m, next);
      default:
        return six_rows<kSixRows>(call, group, m, next);
    }
  });
}

// R rows from m on with V as words, G groups from `group` on.
template <int R, int G>
void six_word_rows(const LinearCall& call, WordPanel panel, uint32_t group, uint32_t m,
                   NextGroups& next) {
  const LinearActivations& a = call.activations;
  const uint8_t* super = call.weights.data + group * call.weights.group_bytes;
  ScaledSums wide[R][G];
  for (uint32_t c = 0; c < a.chunks; c += kSixSuperChunks, super += kSixSuperBytes) {
    for (uint32_t i = 0; i < kSixSuperChunks; ++i) next.prefetch_part();
    __m512i dot[R][G];
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
      for (int g = 0; g < G; ++g) dot[i][g] = _mm512_setzero_si512();
    add_words<R, G, kSixSuper>(a, panel, m, c * kLinearChunk, dot);
#pragma GCC unroll 2
    for (int g = 0; g < G; ++g) {
      const __m512i scale = lanes_of(super + g * call.weights.group_bytes + kSixScalesAt);
      const __m512i odd_scale = _mm512_srli_epi64(scale, 32);
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i) wide[i][g].add(dot[i][g], scale, odd_scale);
    }
  }
  for (int g = 0; g < G; ++g) {
    const GroupOutputs to(call, group + g);
#pragma GCC unroll 1
    for (int i = 0; i < R; ++i) store_even_odd(to, m + i, wide[i][g].even, wide[i][g].odd);
  }
}

struct SixWords {
  template <int R, int G>
  static void rows(const LinearCall& call, WordPanel panel, uint32_t group, uint32_t m,
                   NextGroups& next) {
    six_word_rows<R, G>(call, panel, group, m, next);
  }
};

}  // namespace
}  // namespace troupe

#endif  // __AVX512BW__
