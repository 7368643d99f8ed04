#pragma once
// What the AVX2 kernels have in common. Each 64-byte vector of packed weights is two registers:
// outputs 0 to 7 of a group, and 8 to 15; a kernel computes one such half. Included only by files
// compiled for AVX2; everything has internal linkage, see kernels/linear/linear_kernels.h.

#ifdef __AVX2__  // nothing for a compiler that was not told of it

#include <immintrin.h>

#include "kernels/linear/linear_kernels.h"

namespace troupe {
namespace {

constexpr int kHalfLanes = 8;
constexpr int kRows = 4;  // activations that one pass over the weights serves
// Added to each int32 sum over a chunk, so that it is widened as an unsigned number.
constexpr int64_t kBias = int64_t{1} << 31;

struct Half {
  const LinearCall& call;
  uint32_t group;
  uint32_t half;  // 0 or 1
};

inline __m256i load(const void* p) {
  return _mm256_load_si256(static_cast<const __m256i*>(p));
}

// The processor's own prefetching ends at every page, and begins anew whenever the threads have
// met.
template <size_t kLines>
inline void prefetch_lines(const uint8_t* from) {
#pragma GCC unroll 32
  for (size_t line = 0; line < kLines; ++line)
    _mm_prefetch(reinterpret_cast<const char*>(from + line * 64), _MM_HINT_T0);
}

// Asks for the chunk in the next group that stands where `chunk` does in this one: one half of it
// in each of the two passes over a group.
template <size_t kChunkBytes>
inline void prefetch_next(const Half& half, const uint8_t* chunk) {
  constexpr size_t kLines = (kChunkBytes + 63) / 64;
  prefetch_lines<(kLines + 1) / 2>(chunk + half.call.weights.group_bytes +
                                   half.half * (kLines / 2) * 64);
}

inline void store(void* p, __m256i v) {
  _mm256_store_si256(static_cast<__m256i*>(p), v);
}

inline __m256i broadcast(const void* p) {
  int32_t value;
  __builtin_memcpy(&value, p, sizeof value);
  return _mm256_set1_epi32(value);
}

inline __m256i lanes_of(const uint8_t* words) {
  return _mm256_cvtepi16_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(words)));
}

inline __m256i pair_of(const uint8_t* words) {
  const __m256i once =
      _mm256_cvtepu16_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(words)));
  return _mm256_or_si256(once, _mm256_slli_epi32(once, 16));
}

// Sums of 8 outputs beyond int32. `all` adds up pairs of biased uint32 as they stand, `odd` the
// upper ones alone; what remains of `all` are the lower ones, exact modulo 2^64.
struct WideSums {
  __m256i all = _mm256_setzero_si256();
  __m256i odd = _mm256_setzero_si256();

  void add(__m256i biased) {
    all = _mm256_add_epi64(all, biased);
    odd = _mm256_add_epi64(odd, _mm256_srli_epi64(biased, 32));
  }
};

// Sums of 8 outputs in 64 bits, those of the even and of the odd ones apart.
struct ScaledSums {
  __m256i even = _mm256_setzero_si256();
  __m256i odd = _mm256_setzero_si256();

  void add(__m256i sums, __m256i scale) {
    even = _mm256_add_epi64(even, _mm256_mul_epi32(sums, scale));
    odd = _mm256_add_epi64(
        odd, _mm256_mul_epi32(_mm256_srli_epi64(sums, 32), _mm256_srli_epi64(scale, 32)));
  }
};

// Exact below 2^53, like the sums. In two parts, each an integer added to the bits of a double that
// counts units: the lower 32 bits as they are, in 2^52, and the others in 1.5 * 2^84, where a unit
// is 2^32.
inline __m256d to_double(__m256i sums) {
  const __m256i low_magic = _mm256_set1_epi64x(0x4330000000000000);   // 2^52
  const __m256i high_magic = _mm256_set1_epi64x(0x4538000000000000);  // 1.5 * 2^84
  const __m256i low = _mm256_blend_epi32(low_magic, sums, 0x55);
  // The arithmetic shift by 32 that AVX2 lacks: the upper halves, and copies of their signs.
  const __m256i upper = _mm256_shuffle_epi32(sums, 0xF5);
  const __m256i high = _mm256_blend_epi32(upper, _mm256_srai_epi32(upper, 31), 0xAA);
  const __m256d high_part = _mm256_sub_pd(_mm256_castsi256_pd(_mm256_add_epi64(high, high_magic)),
                                          _mm256_castsi256_pd(high_magic));
  const __m256d low_part = _mm256_sub_pd(_mm256_castsi256_pd(low), _mm256_castsi256_pd(low_magic));
  return _mm256_add_pd(high_part, low_part);
}

inline void store_even_odd(const Half& h, uint32_t m, __m256i even, __m256i odd) {
  const uint32_t n = h.group * kLinearLanes + h.half * kHalfLanes;
  const LinearWeights& w = h.call.weights;
  if (n >= w.n_out) return;
  const __m256i low = _mm256_unpacklo_epi64(even, odd);   // outputs 0 1 | 4 5
  const __m256i high = _mm256_unpackhi_epi64(even, odd);  // outputs 2 3 | 6 7
  const __m256d sums0 = to_double(_mm256_permute2x128_si256(low, high, 0x20));
  const __m256d sums1 = to_double(_mm256_permute2x128_si256(low, high, 0x31));
  const __m256d row = _mm256_set1_pd(static_cast<double>(h.call.activations.scales[m]));
  const __m256d scale0 = _mm256_mul_pd(row, _mm256_cvtps_pd(_mm_loadu_ps(w.scales + n)));
  const __m256d scale1 = _mm256_mul_pd(row, _mm256_cvtps_pd(_mm_loadu_ps(w.scales + n + 4)));
  const __m256 all = _mm256_set_m128(_mm256_cvtpd_ps(_mm256_mul_pd(sums1, scale1)),
                                     _mm256_cvtpd_ps(_mm256_mul_pd(sums0, scale0)));
  float* out = h.call.out + m * h.call.out_stride + n - h.call.group_begin * kLinearLanes;
  if (w.n_out - n >= kHalfLanes) return _mm256_storeu_ps(out, all);
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(w.n_out - n)), lane);
  _mm256_maskstore_ps(out, mask, all);
}

inline void store_wide(const Half& h, uint32_t m, const WideSums& sums) {
  const __m256i bias = _mm256_set1_epi64x(kBias * h.call.weights.chunks);
  const __m256i even = _mm256_sub_epi64(sums.all, _mm256_slli_epi64(sums.odd, 32));
  store_even_odd(h, m, _mm256_sub_epi64(even, bias), _mm256_sub_epi64(sums.odd, bias));
}

inline size_t digits_at(const LinearActivations& a, uint32_t m) {
  return m / a.tile_rows * a.tile_stride + m % a.tile_rows * kLinearChunk;
}

}  // namespace
}  // namespace troupe

#endif  // __AVX2__
