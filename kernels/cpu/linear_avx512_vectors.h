#pragma once
// What the AVX-512 kernels have in common. Included only by files compiled for AVX-512 F, BW, DQ
// and VL at least; everything has internal linkage, see kernels/linear/linear_kernels.h.

#ifdef __AVX512BW__  // nothing for a compiler that was not told of it

#include <immintrin.h>

#include "kernels/linear/linear_kernels.h"

namespace troupe {
namespace {

inline __m512i load(const void* p) {
  return _mm512_load_si512(p);
}

// Four bytes (or two words) of activations in every lane.
inline __m512i broadcast(const void* p) {
  int32_t value;
  __builtin_memcpy(&value, p, sizeof value);
  return _mm512_set1_epi32(value);
}

inline __m512i shifted_words(__m512i raw, int bits) {
  return _mm512_and_si512(_mm512_srli_epi16(raw, static_cast<unsigned>(bits)),
                          _mm512_set1_epi16(15));
}

// An int16 per lane as the lower of a pair of words; the upper one is zero.
inline __m512i single_of(const uint8_t* words) {
  return _mm512_cvtepu16_epi32(_mm256_load_si256(reinterpret_cast<const __m256i*>(words)));
}

// An int16 per lane, twice in each: the factor of a pair of words.
inline __m512i pair_of(const uint8_t* words) {
  const __m512i once = single_of(words);
  return _mm512_or_si512(once, _mm512_slli_epi32(once, 16));
}

// An int16 per lane, sign-extended.
inline __m512i lanes_of(const uint8_t* words) {
  return _mm512_cvtepi16_epi32(_mm256_load_si256(reinterpret_cast<const __m256i*>(words)));
}

// The weights of one vector of kNibble: [0] and [1] are the words of its first quad of inputs, [2]
// and [3] of its second, as kWord orders them.
inline void nibbles_to_weights(__m512i raw, __m512i scale, __m512i offset, __m512i out[4]) {
  out[0] = shifted_words(raw, 0);
  out[1] = shifted_words(raw, 8);
  out[2] = shifted_words(raw, 4);
  out[3] = _mm512_srli_epi16(raw, 12);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) out[i] = _mm512_add_epi16(_mm512_mullo_epi16(out[i], scale), offset);
}

// Where the outputs of one group go, and by what their sums are scaled.
class GroupOutputs {
 public:
  GroupOutputs(const LinearCall& call, uint32_t group)
      : row_scales_(call.activations.scales),
        out_(call.out + (group - call.group_begin) * kLinearLanes),
        stride_(call.out_stride) {
    const uint32_t n = group * kLinearLanes;
    const float* scales = call.weights.scales + n;
    scale0_ = _mm512_cvtps_pd(_mm256_loadu_ps(scales));
    scale1_ = _mm512_cvtps_pd(_mm256_loadu_ps(scales + 8));
    const uint32_t left = call.weights.n_out - n;
    mask_ = static_cast<__mmask16>(left >= kLinearLanes ? 0xFFFF : (1U << left) - 1);
  }
  // Scales and stores the 16 sums of row m: first those of outputs 0 to 7.
  void store(uint32_t m, __m512d first, __m512d second) const {
    const __m512d row = _mm512_set1_pd(static_cast<double>(row_scales_[m]));
    const __m256 out0 = _mm512_cvtpd_ps(_mm512_mul_pd(first, _mm512_mul_pd(row, scale0_)));
    const __m256 out1 = _mm512_cvtpd_ps(_mm512_mul_pd(second, _mm512_mul_pd(row, scale1_)));
    const __m512 all = _mm512_insertf32x8(_mm512_castps256_ps512(out0), out1, 1);
    _mm512_mask_storeu_ps(out_ + m * stride_, mask_, all);
  }

 private:
  const float* row_scales_;
  float* out_;
  size_t stride_;
  __m512d scale0_, scale1_;
  __mmask16 mask_;
};

}  // namespace
}  // namespace troupe

#endif  // __AVX512BW__
