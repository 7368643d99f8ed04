#include "kernels/cpu/linear_avx512_body.h"

namespace troupe {
namespace {

inline __mmask16 lanes_before(uint32_t end, uint32_t k) {
  if (k >= end) return 0;
  return end - k >= 16 ? __mmask16{0xFFFF} : static_cast<__mmask16>((1U << (end - k)) - 1);
}

// The largest bit pattern of an absolute value; NaN is above infinity.
uint32_t max_abs_bits(const float* x, uint32_t n_in) {
  const __m512i no_sign = _mm512_set1_epi32(0x7FFFFFFF);
  __m512i max = _mm512_setzero_si512();
  for (uint32_t k = 0; k < n_in; k += 16) {
    const __m512i bits = _mm512_maskz_loadu_epi32(lanes_before(n_in, k), x + k);
    max = _mm512_max_epu32(max, _mm512_and_si512(bits, no_sign));
  }
  return _mm512_reduce_max_epu32(max);
}

// The words of one row alone, 32 at a time.
void quantize_words(const float* x, uint32_t n_in, __m512 inverse, uint32_t padded,
                    int16_t* words) {
  // The packing instruction takes four of either operand in turn.
  const __m512i in_order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
  const __m512i swap =  // 0, 2, 1, 3 of each quad
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15));
  for (uint32_t k = 0; k < padded; k += kLinearBlock) {
    __m512i a[2];
#pragma GCC unroll 2
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t at = k + 16 * i;
      const __m512 values = _mm512_maskz_loadu_ps(lanes_before(n_in, at), x + at);
      a[i] = _mm512_cvtps_epi32(_mm512_mul_ps(values, inverse));
    }
    const __m512i packed = _mm512_permutexvar_epi64(in_order, _mm512_packs_epi32(a[0], a[1]));
    _mm512_storeu_si512(words + k, _mm512_shuffle_epi8(packed, swap));
  }
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
  const uint32_t padded = out.chunks * kLinearChunk;
  if (!out.has_digits)
    return quantize_words(x, n_in, inverse, padded, out.words + row * out.word_stride);
  const size_t at = row / out.tile_rows * out.tile_stride + row % out.tile_rows * kLinearChunk;
  for (uint32_t k = 0; k < padded; k += 16) {
    const size_t digits =
        at + size_t{k / kLinearChunk} * out.tile_rows * kLinearChunk + k % kLinearChunk;
    const int32_t sum =
        quantize_16(_mm512_maskz_loadu_ps(lanes_before(n_in, k), x + k), inverse,
                    out.words + row * out.word_stride + k, out.high + digits, out.low + digits);
    out.sums[row * out.sum_stride + k / 16] = static_cast<int16_t>(sum);
  }
}

}  // namespace troupe
