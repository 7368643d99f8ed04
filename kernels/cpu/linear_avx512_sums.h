#pragma once
// Products and sums of the AVX-512 kernels, with or without VNNI.

#ifdef __AVX512BW__  // nothing for a compiler that was not told of it

#include "kernels/cpu/linear_avx512_vectors.h"

namespace troupe {
namespace {

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

// Sums of 16 outputs in 64 bits, those of the even and of the odd ones apart.
struct ScaledSums {
  __m512i even = _mm512_setzero_si512();
  __m512i odd = _mm512_setzero_si512();

  // Adds sums * scale; `odd_scale` has the scales of the odd lanes in the even ones.
  void add(__m512i sums, __m512i scale, __m512i odd_scale) {
    even = _mm512_add_epi64(even, _mm512_mul_epi32(sums, scale));
    odd = _mm512_add_epi64(odd, _mm512_mul_epi32(_mm512_srli_epi64(sums, 32), odd_scale));
  }
};

// From sums of the even and the odd outputs to those in order.
inline void store_even_odd(const GroupOutputs& to, uint32_t m, __m512i even, __m512i odd) {
  const __m512i low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
  const __m512i high = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
  to.store(m, _mm512_cvtepi64_pd(_mm512_permutex2var_epi64(even, low, odd)),
           _mm512_cvtepi64_pd(_mm512_permutex2var_epi64(even, high, odd)));
}

// `chunks`: of how many the sums are.
inline void store_wide(const GroupOutputs& to, uint32_t m, const WideSums& sums, uint32_t chunks) {
  const __m512i bias = _mm512_set1_epi64(kBias * chunks);
  const __m512i even = _mm512_sub_epi64(sums.all, _mm512_slli_epi64(sums.odd, 32));
  store_even_odd(to, m, _mm512_sub_epi64(even, bias), _mm512_sub_epi64(sums.odd, bias));
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

}  // namespace
}  // namespace troupe

#endif  // __AVX512BW__
