#pragma once
// Where the AVX-512 kernels for few rows find the digits of the activations, and their products.

#ifdef __AVX512BW__  // nothing for a compiler that was not told of it

#include "kernels/cpu/linear_avx512_prefetch.h"
#include "kernels/cpu/linear_avx512_sums.h"

namespace troupe {
namespace {

// Where R rows of activations stand in one chunk. Two steps between rows and one between the planes
// of digits, rather than three pointers a row, so that all stay in registers.
template <int R>
struct RowDigits {
  const int8_t* row[R];
  ptrdiff_t to_low;
  const int16_t* sums;
  size_t sum_stride;

  RowDigits(const LinearActivations& a, uint32_t m, uint32_t chunk)
      : to_low(a.low - a.high),
        sums(a.sums + m * a.sum_stride + 4 * chunk),
        sum_stride(a.sum_stride) {
    const int8_t* first = a.high + m * a.tile_stride + size_t{chunk} * kLinearChunk;
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
      row[i] = first + i * a.tile_stride;
      asm("" : "+r"(row[i]));  // or the compiler derives a pointer for each use, and spills them
    }
  }
  __m512i high(int i, int input) const {
    return broadcast(row[i] + input);
  }
  __m512i low(int i, int input) const {
    return broadcast(row[i] + to_low + input);
  }
  // The block's sum of A as a pair.
  __m512i sum(int i, int block) const {
    return broadcast(sums + i * sum_stride + 2 * block);
  }
};

// Of R rows over a chunk: sums of the digits' products, scaled. Modulo 2^32 they may wrap; what
// they make together does not.
template <int R>
struct ChunkSums {
  __m512i high[R], low[R];

  ChunkSums() {
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
      high[i] = _mm512_setzero_si512();
      low[i] = _mm512_set1_epi32(INT32_MIN);
    }
  }
  void add_to(WideSums wide[R]) const {
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i)
      wide[i].add(_mm512_add_epi32(_mm512_slli_epi32(high[i], kActivationDigitBits), low[i]));
  }
};

// Adds the products of four quads of inputs, u[i] for those from at + 4i on, with both digits of R
// rows.
template <int R>
inline void add_quads(const RowDigits<R>& x, int at, const __m512i u[4], __m512i h[R],
                      __m512i l[R]) {
#pragma GCC unroll 4
  for (int quad = 0; quad < 4; ++quad)
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
      h[i] = add_byte_products(h[i], u[quad], x.high(i, at + 4 * quad));
      l[i] = add_byte_products(l[i], u[quad], x.low(i, at + 4 * quad));
    }
}

}  // namespace
}  // namespace troupe

#endif  // __AVX512BW__
