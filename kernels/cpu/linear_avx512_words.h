#pragma once
// The AVX-512 kernel for weights as 16-bit words: those packed so, and others expanded once for
// many rows.

#ifdef __AVX512BW__  // nothing for a compiler that was not told of it

#include "kernels/cpu/linear_avx512_sums.h"

namespace troupe {
namespace {

constexpr int kWordRows = 8;

// G groups of kWord weights that stand `group_stride` bytes apart.
struct WordPanel {
  const uint8_t* words;
  size_t group_stride;
};

// R rows from m on, G groups from `group` on.
template <int R, int G>
void word_rows(const LinearCall& call, WordPanel panel, uint32_t group, uint32_t m) {
  const LinearActivations& a = call.activations;
  WideSums wide[R][G];
  for (uint32_t c = 0; c < a.chunks; ++c) {
    const int16_t* x = a.words + m * a.word_stride + c * kLinearChunk;
    const uint8_t* w = panel.words + c * kWordChunkBytes;
    __m512i dot[R][G];
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
      for (int g = 0; g < G; ++g) dot[i][g] = _mm512_set1_epi32(INT32_MIN);
#pragma GCC unroll 2
    for (int t = 0; t < 32; ++t) {
      __m512i weights[G];
#pragma GCC unroll 2
      for (int g = 0; g < G; ++g) weights[g] = load(w + g * panel.group_stride + t * 64);
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i) {
        const __m512i pair = broadcast(x + i * a.word_stride + t * 2);
#pragma GCC unroll 2
        for (int g = 0; g < G; ++g) dot[i][g] = add_word_products(dot[i][g], weights[g], pair);
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
      for (int g = 0; g < G; ++g) wide[i][g].add(dot[i][g]);
  }
  for (int i = 0; i < R; ++i)
    for (int g = 0; g < G; ++g) store_wide(call, group + g, m + i, wide[i][g]);
}

// One group of kNibble weights as kWord.
inline void expand_nibbles(const uint8_t* chunk, uint32_t chunks, uint8_t* words) {
  for (uint32_t c = 0; c < chunks; ++c, chunk += kNibbleChunkBytes)
    for (int b = 0; b < 2; ++b) {
      const __m512i scale = pair_of(chunk + kNibbleScalesAt + b * 64);
      const __m512i offset = pair_of(chunk + kNibbleScalesAt + b * 64 + 32);
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r, words += 256) {
        __m512i out[4];
        nibbles_to_weights(load(chunk + b * 256 + r * 64), scale, offset, out);
        for (int i = 0; i < 4; ++i) _mm512_store_si512(words + i * 64, out[i]);
      }
    }
}

template <int G>
void word_groups(const LinearCall& call, WordPanel panel, uint32_t group) {
  for_row_blocks(call.activations.rows, kWordRows, [&](uint32_t m, uint32_t rows) {
    switch (rows) {
      case 1:
        return word_rows<1, G>(call, panel, group, m);
      case 2:
        return word_rows<2, G>(call, panel, group, m);
      case 3:
        return word_rows<3, G>(call, panel, group, m);
      case 4:
        return word_rows<4, G>(call, panel, group, m);
      case 5:
        return word_rows<5, G>(call, panel, group, m);
      case 6:
        return word_rows<6, G>(call, panel, group, m);
      case 7:
        return word_rows<7, G>(call, panel, group, m);
      default:
        return word_rows<kWordRows, G>(call, panel, group, m);
    }
  });
}

// The words of up to two groups: where they stand already, or expanded into the scratch memory.
inline WordPanel word_panel(const LinearCall& call, uint32_t group, uint32_t groups) {
  const LinearWeights& w = call.weights;
  const uint8_t* packed = w.data + group * w.group_bytes;
  if (w.format == LinearFormat::kWord) return {packed, w.group_bytes};
  const size_t stride = size_t{w.chunks} * kWordChunkBytes;
  for (uint32_t g = 0; g < groups; ++g)
    expand_nibbles(packed + g * w.group_bytes, w.chunks, call.scratch + g * stride);
  return {call.scratch, stride};
}

}  // namespace
}  // namespace troupe

#endif  // __AVX512BW__
