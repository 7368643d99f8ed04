#pragma once
// The linear layer for AVX-512, with or without VNNI: included by linear_avx512.cc and
// linear_avx512vnni.cc, which differ only in what they are compiled for.

#ifdef __AVX512BW__  // nothing for a compiler that was not told of it

#include "kernels/cpu/linear_avx512_byte.h"
#include "kernels/cpu/linear_avx512_digits.h"
#include "kernels/cpu/linear_avx512_five.h"
#include "kernels/cpu/linear_avx512_six.h"
#include "kernels/cpu/linear_avx512_words.h"

namespace troupe {
namespace {

// Up to this number of rows weights are used as they stand; above, they are expanded to words
// first. Expanded bytes are scaled as often as others, so that it does not pay where products of
// bytes are one operation.
#ifdef __AVX512VNNI__
constexpr uint32_t kFewRows = 8;
constexpr uint32_t kFewByteRows = UINT32_MAX;
#else
constexpr uint32_t kFewRows = 4;
constexpr uint32_t kFewByteRows = 4;
static_assert(kFewByteRows <= kDigitRowsMax);
#endif
static_assert(kFewRows <= kDigitRowsMax);
constexpr int kNibbleRows = 4;

// R rows from m on, one group of kNibble weights: sums of digits times u per block, which fit an
// int16 (15 * 63 * 32 = 30,240), times S, plus (sum over A) * B. Modulo 2^32 the parts may wrap;
// their sum over a chunk does not.
template <int R>
void nibble_rows(const LinearCall& call, uint32_t group, uint32_t m, NextGroups& next) {
  const LinearActivations& a = call.activations;
  const uint8_t* chunk = call.weights.data + group * call.weights.group_bytes;
  WideSums wide[R];
  for (uint32_t c = 0; c < a.chunks; ++c, chunk += kNibbleChunkBytes) {
    const RowDigits<R> x(a, m, c);
    next.prefetch_with<kNibbleChunkBytes, 1>(chunk);
    // Both blocks side by side: the sums of one alone would wait for each other.
    __m512i h[2][R], l[2][R];
#pragma GCC unroll 2
    for (int b = 0; b < 2; ++b)
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i) h[b][i] = l[b][i] = _mm512_setzero_si512();
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r)
#pragma GCC unroll 2
      for (int b = 0; b < 2; ++b) {
        const __m512i raw = load(chunk + b * 256 + r * 64);
        const __m512i mask = _mm512_set1_epi8(15);
        const __m512i first = _mm512_and_si512(raw, mask);
        const __m512i second = _mm512_and_si512(_mm512_srli_epi16(raw, 4), mask);
        const int at = b * 32 + r * 8;
#pragma GCC unroll 8
        for (int i = 0; i < R; ++i) {
          h[b][i] = add_byte_products(h[b][i], first, x.high(i, at));
          l[b][i] = add_byte_products(l[b][i], first, x.low(i, at));
        }
#pragma GCC unroll 8
        for (int i = 0; i < R; ++i) {
          h[b][i] = add_byte_products(h[b][i], second, x.high(i, at + 4));
          l[b][i] = add_byte_products(l[b][i], second, x.low(i, at + 4));
        }
      }
    ChunkSums<R> dot;
#pragma GCC unroll 2
    for (int b = 0; b < 2; ++b) {
      const __m512i scale = single_of(chunk + kNibbleScalesAt + b * 64);
      const __m512i offset = pair_of(chunk + kNibbleScalesAt + b * 64 + 32);
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i) {
        dot.high[i] = add_word_products(dot.high[i], h[b][i], scale);
        dot.low[i] = add_word_products(dot.low[i], l[b][i], scale);
        dot.low[i] = add_word_products(dot.low[i], offset, x.sum(i, b));
      }
    }
    dot.add_to(wide);
  }
  const GroupOutputs to(call, group);
  for (int i = 0; i < R; ++i) store_wide(to, m + i, wide[i], a.chunks);
}

inline void nibble_group(const LinearCall& call, uint32_t group) {
  NextGroups next(call, group + 1, 1, kNibbleRows);
  for_row_blocks(call.activations.rows, kNibbleRows, [&](uint32_t m, uint32_t rows) {
    switch (rows) {
      case 1:
        return nibble_rows<1>(call, group, m, next);
      case 2:
        return nibble_rows<2>(call, group, m, next);
      case 3:
        return nibble_rows<3>(call, group, m, next);
      default:
        return nibble_rows<kNibbleRows>(call, group, m, next);
    }
  });
}

// Few rows: weights are used as they stand.
inline void packed_group(const LinearCall& call, uint32_t group) {
  switch (call.weights.format) {
    case LinearFormat::kNibble:
      return nibble_group(call, group);
    case LinearFormat::kFive:
      return five_group<LinearFormat::kFive>(call, group);
    case LinearFormat::kFiveCentred:
      return five_group<LinearFormat::kFiveCentred>(call, group);
    case LinearFormat::kSix:
      return six_group(call, group);
    default:
      return byte_groups<1>(call, group);
  }
}

template <int G>
void expanded_groups(const LinearCall& call, uint32_t group) {
  const WordPanel panel = word_panel(call, group, G);
  if (call.weights.format == LinearFormat::kSix)
    return word_groups<SixWords, G>(call, panel, group);
  if (call.weights.format == LinearFormat::kByte)
    return word_groups<ByteWords, G>(call, panel, group);
  word_groups<PlainWords, G>(call, panel, group);
}

inline bool few_rows(const LinearCall& call) {
  const uint32_t rows = call.activations.rows;
  switch (call.weights.format) {
    case LinearFormat::kWord:
      return false;
    case LinearFormat::kByte:
      return rows <= kFewByteRows;
    default:
      return rows <= kFewRows;
  }
}

inline void linear_groups(const LinearCall& call) {
  const bool few = few_rows(call);
  uint32_t g = call.group_begin;
  if (few && call.weights.format == LinearFormat::kByte)
    for (; g + 2 <= call.group_end; g += 2) byte_groups<2>(call, g);
  if (few) {
    for (; g < call.group_end; ++g) packed_group(call, g);
    return;
  }
  for (; g + 2 <= call.group_end; g += 2) expanded_groups<2>(call, g);
  if (g < call.group_end) expanded_groups<1>(call, g);
}

}  // namespace
}  // namespace troupe

#endif  // __AVX512BW__
