#pragma once
// Sixteen floats in a register of AVX-512, for ops_vector.h. Included only by files compiled for
// AVX-512 F, BW, DQ and VL at least, each of which has a class of its own.

#ifdef __AVX512BW__  // nothing for a compiler that was not told of it

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace troupe {
namespace {

struct Vector {
  static constexpr int kRows = 8;
  static constexpr int kColumns = 2;

  __m512 v;

  static Vector all(float x) { return {_mm512_set1_ps(x)}; }
  static Vector load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static __mmask16 first(uint32_t count) {
    return static_cast<__mmask16>((uint32_t{1} << count) - 1);
  }
  // Lanes from `count` (<= 16) on are +0.
  static Vector load_first(const float* p, uint32_t count) {
    return {_mm512_maskz_loadu_ps(first(count), p)};
  }
  // Sixteen elements of stored KV.
  static Vector load_stored(const uint16_t* p) {
    return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
  }
  void store(float* p) const { _mm512_storeu_ps(p, v); }
  void store_first(float* p, uint32_t count) const { _mm512_mask_storeu_ps(p, first(count), v); }
  void store_as(uint16_t* p) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  // Of numbers in [-127.5, 127.5], rounded to the nearest integer, a tie to the even one.
  void store_as(int8_t* p) const {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(v)));
  }
  // The same of numbers in [-32767.5, 32767.5], as words.
  void store_as_words(std::byte* p) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtsepi32_epi16(_mm512_cvtps_epi32(v)));
  }

  static Vector fma(Vector a, Vector b, Vector c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
  friend Vector operator+(Vector a, Vector b) { return {_mm512_add_ps(a.v, b.v)}; }
  friend Vector operator-(Vector a, Vector b) { return {_mm512_sub_ps(a.v, b.v)}; }
  friend Vector operator*(Vector a, Vector b) { return {_mm512_mul_ps(a.v, b.v)}; }
  friend Vector operator/(Vector a, Vector b) { return {_mm512_div_ps(a.v, b.v)}; }
  [[nodiscard]] Vector negated() const { return {_mm512_xor_ps(v, _mm512_set1_ps(-0.0F))}; }
  // a < b ? a : b and a > b ? a : b: the second operand where one is NaN.
  static Vector min(Vector a, Vector b) { return {_mm512_min_ps(a.v, b.v)}; }
  static Vector max(Vector a, Vector b) { return {_mm512_max_ps(a.v, b.v)}; }
  // x < y ? 0 : value
  static Vector zero_where_less(Vector x, Vector y, Vector value) {
    const __mmask16 keep = _mm512_cmp_ps_mask(x.v, y.v, _CMP_NLT_UQ);
    return {_mm512_maskz_mov_ps(keep, value.v)};
  }
  // 2^n, where the low bits of x = n + 1.5 * 2^23 are those of n in [-126, 127].
  static Vector power_of_two(Vector x) {
    const __m512i biased = _mm512_add_epi32(_mm512_castps_si512(x.v), _mm512_set1_epi32(127));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(biased, 23))};
  }
  static float root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }
  // Adjacent lanes (a, b) become (fma(a, c, -(b s)), fma(b, c, a s)).
  static Vector rotate(Vector x, Vector c, Vector s) {
    const __m512 swapped = _mm512_permute_ps(x.v, 0xB1);
    return {_mm512_fmaddsub_ps(x.v, c.v, _mm512_mul_ps(swapped, s.v))};
  }
  // Lane l += lane l + 8, + 4, + 2, + 1.
  [[nodiscard]] float sum_tree() const {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    four = _mm_add_ss(four, _mm_movehdup_ps(four));
    return _mm_cvtss_f32(four);
  }
  [[nodiscard]] float max_lane() const { return _mm512_reduce_max_ps(v); }

  // For ops_vector_int8.h.
  using Pairs = __m512i;
  static Pairs load_pairs(const int8_t* p) {
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Pairs all_pairs(int32_t pair) { return _mm512_set1_epi32(pair); }
  struct Sums {
    __m512i v = _mm512_setzero_si512();
    void add_products(Pairs a, Pairs b) {
#ifdef __AVX512VNNI__
      v = _mm512_dpwssd_epi32(v, a, b);
#else
      v = _mm512_add_epi32(v, _mm512_madd_epi16(a, b));
#endif
    }
    [[nodiscard]] Vector floats() const {
      return {_mm512_cvtepi32_ps(v)};
    }
  };
};

}  // namespace
}  // namespace troupe

#endif
