// Rows of activations as 12-bit integers, with AVX2.

#include <immintrin.h>

#include "kernels/linear/linear_kernels.h"

namespace troupe {

void quantize_row_avx2(const float* x, uint32_t n_in, const LinearActivations& out, uint32_t row) {
  constexpr int32_t kInfinity = 0x7F800000;
  const __m256i no_sign = _mm256_set1_epi32(0x7FFFFFFF);
  __m256i maxima = _mm256_setzero_si256();
  const uint32_t whole = n_in / 8 * 8;
  for (uint32_t k = 0; k < whole; k += 8) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + k));
    maxima = _mm256_max_epi32(maxima, _mm256_and_si256(bits, no_sign));
  }
  alignas(32) int32_t lanes[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), maxima);
  int32_t max_bits = 0;
  for (const int32_t bits : lanes) max_bits = bits > max_bits ? bits : max_bits;
  float max;
  __builtin_memcpy(&max, &max_bits, sizeof max);
  // Rows that are rare (zeros, NaN, infinity) or not whole chunks go the plain way.
  if (n_in % kLinearChunk != 0 || max_bits >= kInfinity || max < 0x1p-100F)
    return quantize_row_scalar(x, n_in, out, row);
  out.scales[row] = max / static_cast<float>(kActivationMax);
  const __m256 inverse = _mm256_set1_ps(static_cast<float>(kActivationMax) / max);
  const __m256i low_digit = _mm256_set1_epi32((1 << kActivationDigitBits) - 1);
  // The packing instructions work in each 128-bit half apart; this puts the quads in order again.
  const __m256i in_order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  int16_t* words = out.words + row * out.word_stride;
  int16_t* sums = out.sums + row * out.sum_stride;
  const size_t at = row / out.tile_rows * out.tile_stride + row % out.tile_rows * kLinearChunk;
  for (uint32_t k = 0; k < n_in; k += kLinearBlock) {
    __m256i a[4], high[4], low[4], swapped[4];
    for (int i = 0; i < 4; ++i) {
      a[i] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + k + 8 * i), inverse));
      high[i] = _mm256_srai_epi32(a[i], kActivationDigitBits);
      low[i] = _mm256_and_si256(a[i], low_digit);
      swapped[i] = _mm256_shuffle_epi32(a[i], 0xD8);  // 0, 2, 1, 3 of each quad
    }
    for (int i = 0; i < 4; i += 2)
      _mm256_storeu_si256(
          reinterpret_cast<__m256i*>(words + k + 8 * i),
          _mm256_permute4x64_epi64(_mm256_packs_epi32(swapped[i], swapped[i + 1]), 0xD8));
    if (!out.has_digits) continue;
    const auto bytes = [&](const __m256i v[4]) {
      const __m256i packed =
          _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
      return _mm256_permutevar8x32_epi32(packed, in_order);
    };
    const size_t digits =
        at + size_t{k / kLinearChunk} * out.tile_rows * kLinearChunk + k % kLinearChunk;
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out.high + digits), bytes(high));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out.low + digits), bytes(low));
    for (uint32_t half = 0; half < 2; ++half) {
      _mm256_store_si256(reinterpret_cast<__m256i*>(lanes),
                         _mm256_add_epi32(a[2 * half], a[2 * half + 1]));
      int32_t sum = 0;
      for (const int32_t s : lanes) sum += s;
      sums[k / kLinearBlock * 2 + half] = static_cast<int16_t>(sum);
    }
  }
}

}  // namespace troupe
