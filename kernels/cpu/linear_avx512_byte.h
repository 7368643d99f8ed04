#pragma once
// The AVX-512 kernels for weights of 8 bits with a scale per block of 32 inputs: kByte, where
// W = V * S and V = u - 128.
//
// The sum of A * V over a block fits an int32 (2047 * 128 * 32 < 2^23), but not with S, of 16 bits:
// blocks are scaled to 64 bits. That and joining the digits are 7 operations beside 16 products, so
// two thirds of the peak are the limit of the first kernel, which multiplies the bytes u as they
// stand with both digits, two groups at once:
//
//   registers:  h[row][group]  l[row][group]    4 x 2 each: every broadcast digit and every
//               u[group]       one digit        loaded vector serves two products or more
//   memory:     64-bit sums, used once a block
//
// The second multiplies V as words, for processors whose products of bytes are three operations.

#ifdef __AVX512BW__  // nothing for a compiler that was not told of it

#include "kernels/cpu/linear_avx512_digits.h"
#include "kernels/cpu/linear_avx512_words.h"

namespace troupe {
namespace {

constexpr int kByteRows = 4;

// S of a block of G groups.
template <int G>
struct ByteScales {
  __m512i even[G], odd[G];

  ByteScales(const LinearWeights& w, const uint8_t* chunk, uint32_t block) {
#pragma GCC unroll 2
    for (int g = 0; g < G; ++g) {
      even[g] = lanes_of(chunk + g * w.group_bytes + linear_scales_at(LinearFormat::kByte, block));
      odd[g] = _mm512_srli_epi64(even[g], 32);
    }
  }
};

// Of R rows and G groups over a block: the sums of u times each digit, the lower one's less 128
// times the sum of A.
template <int R, int G>
struct ByteSums {
  __m512i high[R][G], low[R][G];

  ByteSums(const RowDigits<R>& x, const uint8_t* bytes, size_t group_bytes, int block) {
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
      const __m512i offset = add_word_products(_mm512_setzero_si512(),
                                               _mm512_set1_epi16(-kByteOffset), x.sum(i, block));
#pragma GCC unroll 2
      for (int g = 0; g < G; ++g) {
        high[i][g] = _mm512_setzero_si512();
        low[i][g] = offset;
      }
    }
#pragma GCC unroll 8
    for (int quad = 0; quad < 8; ++quad) {
      __m512i u[G];
#pragma GCC unroll 2
      for (int g = 0; g < G; ++g) u[g] = load(bytes + g * group_bytes + quad * 64);
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i) {
        const __m512i high_digits = x.high(i, block * 32 + quad * 4);
        const __m512i low_digits = x.low(i, block * 32 + quad * 4);
#pragma GCC unroll 2
        for (int g = 0; g < G; ++g) {
          high[i][g] = add_byte_products(high[i][g], u[g], high_digits);
          low[i][g] = add_byte_products(low[i][g], u[g], low_digits);
        }
      }
    }
  }
};

// R rows from m on, G groups.
template <int R, int G>
void byte_rows(const LinearCall& call, uint32_t group, uint32_t m, NextGroups& next) {
  const LinearActivations& a = call.activations;
  const size_t group_bytes = call.weights.group_bytes;
  const uint8_t* chunk = call.weights.data + group * group_bytes;
  ScaledSums sums[R][G];
  for (uint32_t c = 0; c < a.chunks; ++c, chunk += kByteChunkBytes) {
    const RowDigits<R> x(a, m, c);
    next.prefetch_with<kByteChunkBytes, G>(chunk);
#pragma GCC unroll 2
    for (int b = 0; b < 2; ++b) {
      const ByteSums<R, G> block(x, chunk + b * 512, group_bytes, b);
      const ByteScales<G> scales(call.weights, chunk, static_cast<uint32_t>(b));
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
        for (int g = 0; g < G; ++g) {
          const __m512i high = _mm512_slli_epi32(block.high[i][g], kActivationDigitBits);
          sums[i][g].add(_mm512_add_epi32(high, block.low[i][g]), scales.even[g], scales.odd[g]);
        }
    }
  }
  for (int g = 0; g < G; ++g) {
    const GroupOutputs to(call, group + g);
#pragma GCC unroll 1
    for (int i = 0; i < R; ++i) store_even_odd(to, m + i, sums[i][g].even, sums[i][g].odd);
  }
}

template <int G>
inline void byte_groups(const LinearCall& call, uint32_t group) {
  NextGroups next(call, group + G, G, kByteRows);
  for_row_blocks(call.activations.rows, kByteRows, [&](uint32_t m, uint32_t rows) {
    switch (rows) {
      case 1:
        return byte_rows<1, G>(call, group, m, next);
      case 2:
        return byte_rows<2, G>(call, group, m, next);
      case 3:
        return byte_rows<3, G>(call, group, m, next);
      default:
        return byte_rows<kByteRows, G>(call, group, m, next);
    }
  });
}

// R rows from m on, G groups, with V as words.
template <int R, int G>
void byte_word_rows(const LinearCall& call, WordPanel panel, uint32_t group, uint32_t m,
                    NextGroups& next) {
  const LinearActivations& a = call.activations;
  const uint8_t* chunk = call.weights.data + group * call.weights.group_bytes;
  ScaledSums sums[R][G];
  for (uint32_t c = 0; c < a.chunks; ++c, chunk += kByteChunkBytes) {
    next.prefetch_part();
    for (uint32_t b = 0; b < 2; ++b) {
      __m512i dot[R][G];
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
        for (int g = 0; g < G; ++g) dot[i][g] = _mm512_setzero_si512();
      add_words<R, G, kLinearBlock>(a, panel, m, c * kLinearChunk + b * kLinearBlock, dot);
      const ByteScales<G> scales(call.weights, chunk, b);
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
        for (int g = 0; g < G; ++g) sums[i][g].add(dot[i][g], scales.even[g], scales.odd[g]);
    }
  }
  for (int g = 0; g < G; ++g) {
    const GroupOutputs to(call, group + g);
#pragma GCC unroll 1
    for (int i = 0; i < R; ++i) store_even_odd(to, m + i, sums[i][g].even, sums[i][g].odd);
  }
}

struct ByteWords {
  template <int R, int G>
  static void rows(const LinearCall& call, WordPanel panel, uint32_t group, uint32_t m,
                   NextGroups& next) {
    byte_word_rows<R, G>(call, panel, group, m, next);
  }
};

}  // namespace
}  // namespace troupe

#endif  // __AVX512BW__
