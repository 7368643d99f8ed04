#pragma once
// The AVX-512 kernel for weights as 16-bit words: those packed so, and others expanded once for
// many rows.

#ifdef __AVX512BW__  // nothing for a compiler that was not told of it

#include "kernels/cpu/linear_avx512_prefetch.h"
#include "kernels/cpu/linear_avx512_quants.h"
#include "kernels/cpu/linear_avx512_sums.h"

namespace troupe {
namespace {

constexpr int kWordRows = 8;
constexpr size_t kWordInputBytes = kWordChunkBytes / kLinearChunk;  // of a group

// G groups of kWord weights that stand `group_stride` bytes apart.
struct WordPanel {
  const uint8_t* words;
  size_t group_stride;
};

// Adds the products of R rows from m on with the words of kInputs inputs from `input` on, G groups.
template <int R, int G, uint32_t kInputs>
inline void add_words(const LinearActivations& a, WordPanel panel, uint32_t m, uint32_t input,
                      __m512i dot[R][G]) {
  const int16_t* x = a.words + m * a.word_stride + input;
  const uint8_t* w = panel.words + size_t{input} * kWordInputBytes;
#pragma GCC unroll 1
  for (uint32_t pair = 0; pair < kInputs / 2; pair += 2)
#pragma GCC unroll 2
    for (uint32_t t = pair; t < pair + 2; ++t) {
      __m512i weights[G];
#pragma GCC unroll 2
      for (int g = 0; g < G; ++g) weights[g] = load(w + g * panel.group_stride + t * 64);
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i) {
        const __m512i inputs = broadcast(x + i * a.word_stride + t * 2);
#pragma GCC unroll 2
        for (int g = 0; g < G; ++g) dot[i][g] = add_word_products(dot[i][g], weights[g], inputs);
      }
    }
}

// R rows from m on, G groups from `group` on, with W as words.
template <int R, int G>
void word_rows(const LinearCall& call, WordPanel panel, uint32_t group, uint32_t m,
               NextGroups& next) {
  const LinearActivations& a = call.activations;
  WideSums wide[R][G];
  for (uint32_t c = 0; c < a.chunks; ++c) {
    next.prefetch_part();
    __m512i dot[R][G];
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
      for (int g = 0; g < G; ++g) dot[i][g] = _mm512_set1_epi32(INT32_MIN);
    add_words<R, G, kLinearChunk>(a, panel, m, c * kLinearChunk, dot);
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
      for (int g = 0; g < G; ++g) wide[i][g].add(dot[i][g]);
  }
  for (int g = 0; g < G; ++g) {
    const GroupOutputs to(call, group + g);
#pragma GCC unroll 1
    for (int i = 0; i < R; ++i) store_wide(to, m + i, wide[i][g], a.chunks);
  }
}

// What a kernel of R rows and G groups is called by word_groups().
struct PlainWords {
  template <int R, int G>
  static void rows(const LinearCall& call, WordPanel panel, uint32_t group, uint32_t m,
                   NextGroups& next) {
    word_rows<R, G>(call, panel, group, m, next);
  }
};

// 16 inputs.
inline void store_words(const __m512i words[8], uint8_t* to) {
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) _mm512_store_si512(to + i * 64, words[i]);
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

template <LinearFormat kFormat>
void expand_fives(const uint8_t* chunk, uint32_t chunks, uint8_t* words) {
  for (uint32_t c = 0; c < chunks; ++c, chunk += linear_chunk_bytes(kFormat))
    expand_five_chunk<kFormat>(chunk, [&](uint32_t input, const __m512i out[8]) {
      store_words(out, words + c * kWordChunkBytes + input * 32);
    });
}

// V alone: D is left to the sums.
inline void expand_sixes(const uint8_t* group, uint32_t chunks, uint8_t* words) {
  for (uint32_t c = 0; c < chunks; ++c)
    expand_six_chunk(group + linear_chunk_at(LinearFormat::kSix, c),
                     [&](uint32_t input, const __m512i out[8]) {
                       store_words(out, words + c * kWordChunkBytes + input * 32);
                     });
}

// V = u - 128 alone: S is left to the sums.
inline void expand_bytes(const uint8_t* chunk, uint32_t chunks, uint8_t* words) {
  const __m512i byte = _mm512_set1_epi16(255);
  const __m512i offset = _mm512_set1_epi16(kByteOffset);
  for (uint32_t c = 0; c < chunks; ++c, chunk += kByteChunkBytes)
#pragma GCC unroll 4
    for (int r = 0; r < 16; ++r, words += 128) {
      const __m512i u = load(chunk + r * 64);
      _mm512_store_si512(words, _mm512_sub_epi16(_mm512_and_si512(u, byte), offset));
      _mm512_store_si512(words + 64, _mm512_sub_epi16(_mm512_srli_epi16(u, 8), offset));
    }
}

inline void expand_group(LinearFormat format, const uint8_t* group, uint32_t chunks,
                         uint8_t* words) {
  switch (format) {
    case LinearFormat::kFive:
      return expand_fives<LinearFormat::kFive>(group, chunks, words);
    case LinearFormat::kFiveCentred:
      return expand_fives<LinearFormat::kFiveCentred>(group, chunks, words);
    case LinearFormat::kSix:
      return expand_sixes(group, chunks, words);
    case LinearFormat::kByte:
      return expand_bytes(group, chunks, words);
    default:
      return expand_nibbles(group, chunks, words);
  }
}

template <class Words, int G>
void word_groups(const LinearCall& call, WordPanel panel, uint32_t group) {
  NextGroups next(call, group + G, G, kWordRows);
  for_row_blocks(call.activations.rows, kWordRows, [&](uint32_t m, uint32_t rows) {
    switch (rows) {
      case 1:
        return Words::template rows<1, G>(call, panel, group, m, next);
      case 2:
        return Words::template rows<2, G>(call, panel, group, m, next);
      case 3:
        return Words::template rows<3, G>(call, panel, group, m, next);
      case 4:
        return Words::template rows<4, G>(call, panel, group, m, next);
      case 5:
        return Words::template rows<5, G>(call, panel, group, m, next);
      case 6:
        return Words::template rows<6, G>(call, panel, group, m, next);
      case 7:
        return Words::template rows<7, G>(call, panel, group, m, next);
      default:
        return Words::template rows<kWordRows, G>(call, panel, group, m, next);
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
    expand_group(w.format, packed + g * w.group_bytes, w.chunks, call.scratch + g * stride);
  return {call.scratch, stride};
}

}  // namespace
}  // namespace troupe

#endif  // __AVX512BW__
