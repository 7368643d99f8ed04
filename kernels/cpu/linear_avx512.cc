#include "kernels/cpu/linear_avx512_body.h"

namespace troupe {
namespace {

// The largest bit pattern of an absolute value; NaN is above infinity.
uint32_t max_abs_bits(const float* x, uint32_t n_in) {
  const __m512i no_sign = _mm512_set1_epi32(0x7FFFFFFF);
  __m512i max = _mm512_setzero_si512();
  for (uint32_t k = 0; k < n_in; k += 16) {
    const auto mask = static_cast<__mmask16>(n_in - k >= 16 ? 0xFFFF : (1U << (n_in - k)) - 1);
    const __m512i bits = _mm512_maskz_loadu_epi32(mask, x + k);
    max = _mm512_max_epu32(max, _mm512_and_si512(bits, no_sign));
  }
  return _mm512_reduce_max_epu32(max);
}

// 16 values of one row; returns their sum. Input k + i goes to its place in all forms.
int32_t quantize_16(__m512 x, __m512 inverse, int16_t* words, int8_t* high, int8_t* low) {
  const __m512i a = _mm512_cvtps_epi32(_mm512_mul_ps(x, inverse));
  const __m512i swapped = _mm512_shuffle_epi32(a, _MM_PERM_DBCA);  // 0, 2, 1, 3 of each quad
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(words), _mm512_cvtepi32_epi16(swapped));
  const __m512i digit = _mm512_set1_epi32((1 << kActivationDigitBits) - 1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(high),
                   _mm512_cvtepi32_epi8(_mm512_srai_epi32(a, kActivationDigitBits)));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(low),
                   _mm512_cvtepi32_epi8(_mm512_and_si512(a, digit)));
  return _mm512_reduce_add_epi32(a);
}

}  // namespace

void linear_avx512(const LinearCall& call) {
  linear_groups(call);
}

void quantize_row_avx512(const float* x, uint32_t n_in, const LinearActivations& out,
                         uint32_t row) {
  constexpr uint32_t kInfinity = 0x7F800000;
  const uint32_t max_bits = max_abs_bits(x, n_in);
  float max;
  __builtin_memcpy(&max, &max_bits, sizeof max);
  // Rare rows go the plain way: zeros, NaN, infinity.
  if (max_bits >= kInfinity || max < 0x1p-100F) return quantize_row_scalar(x, n_in, out, row);
  out.scales[row] = max / static_cast<float>(kActivationMax);
  const __m512 inverse = _mm512_set1_ps(static_cast<float>(kActivationMax) / max);
  const size_t at = row / out.tile_rows * out.tile_stride + row % out.tile_rows * kLinearChunk;
  for (uint32_t k = 0; k < out.chunks * kLinearChunk; k += 16) {
    const __mmask16 mask = k >= n_in        ? 0
                           : n_in - k >= 16 ? 0xFFFF
                                            : static_cast<__mmask16>((1U << (n_in - k)) - 1);
    const size_t digits =
        at + size_t{k / kLinearChunk} * out.tile_rows * kLinearChunk + k % kLinearChunk;
    const int32_t sum =
        quantize_16(_mm512_maskz_loadu_ps(mask, x + k), inverse,
                    out.words + row * out.word_stride + k, out.high + digits, out.low + digits);
    out.sums[row * out.sum_stride + k / 16] = static_cast<int16_t>(sum);
  }
}

}  // namespace troupe
