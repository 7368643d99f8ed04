#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/ops_tables.h"
#include "kernels/cpu/ops_vector.h"

namespace troupe {
namespace {

// Lanes 0-7 and 8-15.
struct Vector {
  static constexpr int kRows = 4;
  static constexpr int kColumns = 1;

  __m256 lo, hi;

  static Vector all(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static Vector load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static __m256i first(int count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  // Lanes from `count` (<= 16) on are +0. Masked lanes are never touched in memory.
  static Vector load_first(const float* p, uint32_t count) {
    const int n = static_cast<int>(count);
    return {_mm256_maskload_ps(p, first(n)), _mm256_maskload_ps(p + 8, first(n - 8))};
  }
  static __m256 widen(const uint16_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  // Sixteen elements of stored KV.
  static Vector load_stored(const uint16_t* p) { return {widen(p), widen(p + 8)}; }
  void store(float* p) const {
    _mm256_storeu_ps(p, lo);
    _mm256_storeu_ps(p + 8, hi);
  }
  void store_first(float* p, uint32_t count) const {
    const int n = static_cast<int>(count);
    _mm256_maskstore_ps(p, first(n), lo);
    _mm256_maskstore_ps(p + 8, first(n - 8), hi);
  }
  void store_as(uint16_t* p) const {
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(lo, kNearest));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(hi, kNearest));
  }
  [[nodiscard]] __m256i words() const {
    const __m256i mixed = _mm256_packs_epi32(_mm256_cvtps_epi32(lo), _mm256_cvtps_epi32(hi));
    return _mm256_permute4x64_epi64(mixed, 0xD8);  // quads 0 2 1 3
  }
  // Of numbers in [-32767.5, 32767.5], rounded to the nearest integer, a tie to the even one.
  void store_as_words(std::byte* p) const {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), words());
  }
  // The same of numbers in [-127.5, 127.5].
  void store_as(int8_t* p) const {
    const __m256i words = this->words();
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(p),
        _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
  }

  static Vector fma(Vector a, Vector b, Vector c) {
    return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
  }
  friend Vector operator+(Vector a, Vector b) {
    return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
  }
  friend Vector operator-(Vector a, Vector b) {
    return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
  }
  friend Vector operator*(Vector a, Vector b) {
    return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
  }
  friend Vector operator/(Vector a, Vector b) {
    return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
  }
  [[nodiscard]] Vector negated() const {
    const __m256 sign = _mm256_set1_ps(-0.0F);
    return {_mm256_xor_ps(lo, sign), _mm256_xor_ps(hi, sign)};
  }
  // a < b ? a : b and a > b ? a : b: the second operand where one is NaN.
  static Vector min(Vector a, Vector b) {
    return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
  }
  static Vector max(Vector a, Vector b) {
    return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
  }
  // x < y ? 0 : value
  static Vector zero_where_less(Vector x, Vector y, Vector value) {
    return {_mm256_and_ps(_mm256_cmp_ps(x.lo, y.lo, _CMP_NLT_UQ), value.lo),
            _mm256_and_ps(_mm256_cmp_ps(x.hi, y.hi, _CMP_NLT_UQ), value.hi)};
  }
  // 2^n, where the low bits of x = n + 1.5 * 2^23 are those of n in [-126, 127].
  static __m256 power_of_two(__m256 x) {
    const __m256i biased = _mm256_add_epi32(_mm256_castps_si256(x), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
  }
  static Vector power_of_two(Vector x) { return {power_of_two(x.lo), power_of_two(x.hi)}; }
  static float root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }
  // Adjacent lanes (a, b) become (fma(a, c, -(b s)), fma(b, c, a s)).
  static __m256 rotate(__m256 x, __m256 c, __m256 s) {
    return _mm256_fmaddsub_ps(x, c, _mm256_mul_ps(_mm256_permute_ps(x, 0xB1), s));
  }
  static Vector rotate(Vector x, Vector c, Vector s) {
    return {rotate(x.lo, c.lo, s.lo), rotate(x.hi, c.hi, s.hi)};
  }
  // Lane l += lane l + 8, + 4, + 2, + 1.
  [[nodiscard]] float sum_tree() const {
    const __m256 eight = _mm256_add_ps(lo, hi);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    four = _mm_add_ss(four, _mm_movehdup_ps(four));
    return _mm_cvtss_f32(four);
  }
  [[nodiscard]] float max_lane() const {
    const __m256 eight = _mm256_max_ps(lo, hi);
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    four = _mm_max_ss(four, _mm_movehdup_ps(four));
    return _mm_cvtss_f32(four);
  }

  // For ops_vector_int8.h.
  struct Pairs {
    __m256i lo, hi;
  };
  static __m256i widen(const int8_t* p) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Pairs load_pairs(const int8_t* p) { return {widen(p), widen(p + 16)}; }
  static Pairs all_pairs(int32_t pair) {
    return {_mm256_set1_epi32(pair), _mm256_set1_epi32(pair)};
  }
  struct Sums {
    __m256i lo = _mm256_setzero_si256(), hi = _mm256_setzero_si256();
    void add_products(Pairs a, Pairs b) {
      lo = _mm256_add_epi32(lo, _mm256_madd_epi16(a.lo, b.lo));
      hi = _mm256_add_epi32(hi, _mm256_madd_epi16(a.hi, b.hi));
    }
    [[nodiscard]] Vector floats() const { return {_mm256_cvtepi32_ps(lo), _mm256_cvtepi32_ps(hi)}; }
  };
};

}  // namespace

const Ops& avx2_ops() {
  return ops_vector::kTable<Vector>;
}

}  // namespace troupe
