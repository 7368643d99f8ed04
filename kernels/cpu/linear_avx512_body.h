#pragma once
// The linear layer for AVX-512, with or without VNNI: included by linear_avx512.cc and
// linear_avx512vnni.cc, which differ only in what they are compiled for.

#ifdef __AVX512BW__  // nothing for a compiler that was not told of it

#include "kernels/cpu/linear_avx512_vectors.h"

namespace troupe {
namespace {

// Up to this number of rows weights are used as they stand; above, they are expanded to words
// first.
#ifdef __AVX512VNNI__
constexpr uint32_t kFewRows = 8;
#else
constexpr uint32_t kFewRows = 4;
#endif
constexpr int kNibbleRows = 4;
constexpr int kWordRows = 8;
constexpr int kByteRows = 4;
// Added to each int32 sum over a chunk, so that it is widened as an unsigned number.
constexpr int64_t kBias = int64_t{1} << 31;

// acc + the four products of unsigned bytes u and digits of activations in each lane. Digits have 6
// bits, so the pair sums of the older instruction stay below 255 * 63 * 2 and do not saturate.
inline __m512i add_byte_products(__m512i acc, __m512i u, __m512i digits) {
#ifdef __AVX512VNNI__
  asm("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(u), "v"(digits));
  return acc;
#else
  const __m512i pairs = _mm512_maddubs_epi16(u, digits);
  return _mm512_add_epi32(acc, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
#endif
}

inline __m512i add_word_products(__m512i acc, __m512i a, __m512i b) {
#ifdef __AVX512VNNI__
  asm("vpdpwssd %2, %1, %0" : "+v"(acc) : "v"(a), "v"(b));
  return acc;
#else
  return _mm512_add_epi32(acc, _mm512_madd_epi16(a, b));
#endif
}

// Sums of 16 outputs beyond int32. `all` adds up pairs of biased uint32 as they stand, `odd` the
// upper ones alone; what remains of `all` are the lower ones, exact modulo 2^64.
struct WideSums {
  __m512i all = _mm512_setzero_si512();
  __m512i odd = _mm512_setzero_si512();

  void add(__m512i biased) {
    all = _mm512_add_epi64(all, biased);
    odd = _mm512_add_epi64(odd, _mm512_srli_epi64(biased, 32));
  }
};

// From sums of the even and the odd outputs to those in order.
inline void store_even_odd(const LinearCall& call, uint32_t group, uint32_t m, __m512i even,
                           __m512i odd) {
  const __m512i low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
  const __m512i high = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
  store_sums(call, group, m, _mm512_cvtepi64_pd(_mm512_permutex2var_epi64(even, low, odd)),
             _mm512_cvtepi64_pd(_mm512_permutex2var_epi64(even, high, odd)));
}

inline void store_wide(const LinearCall& call, uint32_t group, uint32_t m, const WideSums& sums) {
  const __m512i bias = _mm512_set1_epi64(kBias * call.weights.chunks);
  const __m512i even = _mm512_sub_epi64(sums.all, _mm512_slli_epi64(sums.odd, 32));
  store_even_odd(call, group, m, _mm512_sub_epi64(even, bias), _mm512_sub_epi64(sums.odd, bias));
}

inline size_t digits_at(const LinearActivations& a, uint32_t m) {
  return m / a.tile_rows * a.tile_stride + m % a.tile_rows * kLinearChunk;
}

// R rows from m on, one group of kNibble weights: sums of digits times u per block, which fit an
// int16 (15 * 63 * 32 = 30,240), times S, plus (sum over A) * B. Modulo 2^32 the parts may wrap;
// their sum over a chunk does not.
template <int R>
void nibble_rows(const LinearCall& call, uint32_t group, uint32_t m) {
  const LinearActivations& a = call.activations;
  const uint8_t* chunk = call.weights.data + group * call.weights.group_bytes;
  const int8_t* high[R];
  const int8_t* low[R];
  const int16_t* sums[R];
  WideSums wide[R];
  for (int i = 0; i < R; ++i) {
    high[i] = a.high + digits_at(a, m + i);
    low[i] = a.low + digits_at(a, m + i);
    sums[i] = a.sums + (m + i) * a.sum_stride;
  }
  const size_t step = size_t{a.tile_rows} * kLinearChunk;
  for (uint32_t c = 0; c < a.chunks; ++c, chunk += kNibbleChunkBytes) {
    __m512i dot_high[R], dot_low[R];
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) {
      dot_high[i] = _mm512_setzero_si512();
      dot_low[i] = _mm512_set1_epi32(INT32_MIN);
    }
#pragma GCC unroll 2
    for (int b = 0; b < 2; ++b) {
      __m512i h[R], l[R];
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i) h[i] = l[i] = _mm512_setzero_si512();
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) {
        const __m512i raw = load(chunk + b * 256 + r * 64);
        const __m512i mask = _mm512_set1_epi8(15);
        const __m512i first = _mm512_and_si512(raw, mask);
        const __m512i second = _mm512_and_si512(_mm512_srli_epi16(raw, 4), mask);
        const size_t at = c * step + b * 32 + r * 8;
#pragma GCC unroll 8
        for (int i = 0; i < R; ++i) {
          h[i] = add_byte_products(h[i], first, broadcast(high[i] + at));
          l[i] = add_byte_products(l[i], first, broadcast(low[i] + at));
          h[i] = add_byte_products(h[i], second, broadcast(high[i] + at + 4));
          l[i] = add_byte_products(l[i], second, broadcast(low[i] + at + 4));
        }
      }
      const __m512i scale = single_of(chunk + kNibbleScalesAt + b * 64);
      const __m512i offset = pair_of(chunk + kNibbleScalesAt + b * 64 + 32);
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i) {
        dot_high[i] = add_word_products(dot_high[i], h[i], scale);
        dot_low[i] = add_word_products(dot_low[i], l[i], scale);
        dot_low[i] = add_word_products(dot_low[i], offset, broadcast(sums[i] + 4 * c + 2 * b));
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i)
      wide[i].add(
          _mm512_add_epi32(_mm512_slli_epi32(dot_high[i], kActivationDigitBits), dot_low[i]));
  }
  for (int i = 0; i < R; ++i) store_wide(call, group, m + i, wide[i]);
}

// R rows from m on, one group of kByte weights; S is too wide for int32, so that blocks are scaled
// to 64 bits, even and odd outputs apart.
template <int R>
void byte_rows(const LinearCall& call, uint32_t group, uint32_t m) {
  const LinearActivations& a = call.activations;
  const uint8_t* chunk = call.weights.data + group * call.weights.group_bytes;
  const int8_t* high[R];
  const int8_t* low[R];
  const int16_t* sums[R];
  __m512i even[R], odd[R];
  for (int i = 0; i < R; ++i) {
    high[i] = a.high + digits_at(a, m + i);
    low[i] = a.low + digits_at(a, m + i);
    sums[i] = a.sums + (m + i) * a.sum_stride;
    even[i] = odd[i] = _mm512_setzero_si512();
  }
  const size_t step = size_t{a.tile_rows} * kLinearChunk;
  for (uint32_t c = 0; c < a.chunks; ++c, chunk += kByteChunkBytes) {
#pragma GCC unroll 2
    for (int b = 0; b < 2; ++b) {
      __m512i h[R], l[R];
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i) {
        h[i] = _mm512_setzero_si512();
        l[i] = add_word_products(h[i], _mm512_set1_epi16(-kByteOffset),
                                 broadcast(sums[i] + 4 * c + 2 * b));
      }
#pragma GCC unroll 8
      for (int r = 0; r < 8; ++r) {
        const __m512i u = load(chunk + b * 512 + r * 64);
        const size_t at = c * step + b * 32 + r * 4;
#pragma GCC unroll 8
        for (int i = 0; i < R; ++i) {
          h[i] = add_byte_products(h[i], u, broadcast(high[i] + at));
          l[i] = add_byte_products(l[i], u, broadcast(low[i] + at));
        }
      }
      const __m512i scale = lanes_of(chunk + kByteScalesAt + b * 32);
      const __m512i odd_scale = _mm512_srli_epi64(scale, 32);
#pragma GCC unroll 8
      for (int i = 0; i < R; ++i) {
        const __m512i s = _mm512_add_epi32(_mm512_slli_epi32(h[i], kActivationDigitBits), l[i]);
        even[i] = _mm512_add_epi64(even[i], _mm512_mul_epi32(s, scale));
        odd[i] = _mm512_add_epi64(odd[i], _mm512_mul_epi32(_mm512_srli_epi64(s, 32), odd_scale));
      }
    }
  }
  for (int i = 0; i < R; ++i) store_even_odd(call, group, m + i, even[i], odd[i]);
}

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

// Calls body(first row, rows) with at most `most` rows each time, in blocks as equal as can be: 9
// rows as 5 + 4 rather than 8 + 1.
template <class Body>
inline void for_row_blocks(uint32_t rows, uint32_t most, Body body) {
  const uint32_t blocks = (rows + most - 1) / most;
  for (uint32_t i = 0; i < blocks; ++i) {
    const uint32_t begin = static_cast<uint32_t>(uint64_t{rows} * i / blocks);
    const uint32_t end = static_cast<uint32_t>(uint64_t{rows} * (i + 1) / blocks);
    body(begin, end - begin);
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

inline void nibble_group(const LinearCall& call, uint32_t group) {
  for_row_blocks(call.activations.rows, kNibbleRows, [&](uint32_t m, uint32_t rows) {
    switch (rows) {
      case 1:
        return nibble_rows<1>(call, group, m);
      case 2:
        return nibble_rows<2>(call, group, m);
      case 3:
        return nibble_rows<3>(call, group, m);
      default:
        return nibble_rows<kNibbleRows>(call, group, m);
    }
  });
}

inline void byte_group(const LinearCall& call, uint32_t group) {
  for_row_blocks(call.activations.rows, kByteRows, [&](uint32_t m, uint32_t rows) {
    switch (rows) {
      case 1:
        return byte_rows<1>(call, group, m);
      case 2:
        return byte_rows<2>(call, group, m);
      case 3:
        return byte_rows<3>(call, group, m);
      default:
        return byte_rows<kByteRows>(call, group, m);
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

inline void linear_groups(const LinearCall& call) {
  const LinearFormat format = call.weights.format;
  const bool few = format == LinearFormat::kNibble && call.activations.rows <= kFewRows;
  if (few || format == LinearFormat::kByte) {
    for (uint32_t g = call.group_begin; g < call.group_end; ++g)
      few ? nibble_group(call, g) : byte_group(call, g);
    return;
  }
  uint32_t g = call.group_begin;
  for (; g + 2 <= call.group_end; g += 2) word_groups<2>(call, word_panel(call, g, 2), g);
  if (g < call.group_end) word_groups<1>(call, word_panel(call, g, 1), g);
}

}  // namespace
}  // namespace troupe

#endif  // __AVX512BW__
