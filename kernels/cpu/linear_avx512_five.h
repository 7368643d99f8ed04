#pragma once
// The AVX-512 kernel for few rows and weights of 5 bits with a scale, and perhaps an offset, per
// block of 32 inputs: kFive and kFiveCentred.
//
// Quants become bytes u in 0..31 and are multiplied by both digits of the activations. Sums of
// u * high over a block (31 * 32 * 32 = 31,744) and of u * low over half a block (31 * 63 * 16 =
// 31,248) fit an int16, the operand of the product with S. Modulo 2^32 the parts of a chunk's sum
// may wrap; the sum does not.

#ifdef __AVX512BW__  // nothing for a compiler that was not told of it

#include "kernels/cpu/linear_avx512_digits.h"
#include "kernels/cpu/linear_avx512_quants.h"

namespace troupe {
namespace {

constexpr int kFiveRows = 4;

// R rows from m on, one group.
template <LinearFormat kFormat, int R>
void five_rows(const LinearCall& call, uint32_t group, uint32_t m, NextGroups& next) {
  const LinearActivations& a = call.activations;
  const uint8_t* chunk = call.weights.data + group * call.weights.group_bytes;
  WideSums wide[R];
  for (uint32_t c = 0; c < a.chunks; ++c, chunk += linear_chunk_bytes(kFormat)) {
    const RowDigits<R> x(a, m, c);
    next.prefetch_with<linear_chunk_bytes(kFormat), 1>(chunk);
    ChunkSums<R> dot;
#pragma GCC unroll 2
    for (int b = 0; b < 2; ++b) {
      const __m512i plane = load(chunk + kFiveBitsAt + b * 64);
      __m512i h[R], l[2][R], u[4];
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i) h[i] = l[0][i] = l[1][i] = _mm512_setzero_si512();
      five_quants<0>(chunk + b * 256, plane, u);
      add_quads(x, b * 32, u, h, l[0]);
      five_quants<1>(chunk + b * 256, plane, u);
      add_quads(x, b * 32 + 16, u, h, l[1]);
      const BlockPairs f = block_pairs<kFormat>(chunk, static_cast<uint32_t>(b));
      const __m512i scale = _mm512_srli_epi32(f.scale, 16);
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i) {
        dot.high[i] = add_word_products(dot.high[i], h[i], scale);
        dot.low[i] = add_word_products(dot.low[i], l[0][i], scale);
        dot.low[i] = add_word_products(dot.low[i], l[1][i], scale);
        dot.low[i] = add_word_products(dot.low[i], f.offset, x.sum(i, b));
      }
    }
    dot.add_to(wide);
  }
  const GroupOutputs to(call, group);
  for (int i = 0; i < R; ++i) store_wide(to, m + i, wide[i], a.chunks);
}

template <LinearFormat kFormat>
void five_group(const LinearCall& call, uint32_t group) {
  NextGroups next(call, group + 1, 1, kFiveRows);
  for_row_blocks(call.activations.rows, kFiveRows, [&](uint32_t m, uint32_t rows) {
    switch (rows) {
      case 1:
        return five_rows<kFormat, 1>(call, group, m, next);
      case 2:
        return five_rows<kFormat, 2>(call, group, m, next);
      case 3:
        return five_rows<kFormat, 3>(call, group, m, next);
      default:
        return five_rows<kFormat, kFiveRows>(call, group, m, next);
    }
  });
}

}  // namespace
}  // namespace troupe

#endif  // __AVX512BW__
