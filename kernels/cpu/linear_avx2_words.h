#pragma once
// The AVX2 kernel for weights as 16-bit words: those packed so, and others expanded once for many
// rows.

#ifdef __AVX2__  // nothing for a compiler that was not told of it

#include "kernels/cpu/linear_avx2_vectors.h"

namespace troupe {
namespace {

constexpr size_t kWordInputBytes = kWordChunkBytes / kLinearChunk;  // of a group

// Adds the products of R rows from m on with the words of kInputs inputs from `input` on, both
// halves: a broadcast serves two products.
template <int R, uint32_t kInputs>
inline void add_words(const LinearActivations& a, const uint8_t* words, uint32_t m, uint32_t input,
                      __m256i dot[R][2]) {
  const int16_t* x = a.words + m * a.word_stride + input;
  const uint8_t* w = words + input * kWordInputBytes;
  for (uint32_t t = 0; t < kInputs / 2; ++t) {
    const __m256i w0 = load(w + t * 64);
    const __m256i w1 = load(w + t * 64 + 32);
#pragma GCC unroll 4
    for (int i = 0; i < R; ++i) {
      const __m256i pair = broadcast(x + i * a.word_stride + t * 2);
      dot[i][0] = _mm256_add_epi32(dot[i][0], _mm256_madd_epi16(w0, pair));
      dot[i][1] = _mm256_add_epi32(dot[i][1], _mm256_madd_epi16(w1, pair));
    }
  }
}

// R rows from m on with the group's W as words, both halves.
template <int R>
void word_rows(const LinearCall& call, const uint8_t* words, uint32_t group, uint32_t m) {
  const LinearActivations& a = call.activations;
  WideSums wide[R][2];
  for (uint32_t c = 0; c < a.chunks; ++c) {
    __m256i dot[R][2];
#pragma GCC unroll 4
    for (int i = 0; i < R; ++i) dot[i][0] = dot[i][1] = _mm256_set1_epi32(INT32_MIN);
    add_words<R, kLinearChunk>(a, words, m, c * kLinearChunk, dot);
    for (int i = 0; i < R; ++i)
      for (int h = 0; h < 2; ++h) wide[i][h].add(dot[i][h]);
  }
  for (int i = 0; i < R; ++i)
    for (uint32_t h = 0; h < 2; ++h) store_wide({call, group, h}, m + i, wide[i][h]);
}

struct PlainWords {
  template <int R>
  static void rows(const LinearCall& call, const uint8_t* words, uint32_t group, uint32_t m) {
    word_rows<R>(call, words, group, m);
  }
};

template <class Words>
void word_rows_of_group(const LinearCall& call, const uint8_t* words, uint32_t group) {
  const uint32_t rows = call.activations.rows;
  for (uint32_t m = 0; m < rows; m += kRows) switch (rows - m) {
      case 1:
        return Words::template rows<1>(call, words, group, m);
      case 2:
        return Words::template rows<2>(call, words, group, m);
      case 3:
        return Words::template rows<3>(call, words, group, m);
      default:
        Words::template rows<kRows>(call, words, group, m);
    }
}

}  // namespace
}  // namespace troupe

#endif  // __AVX2__
