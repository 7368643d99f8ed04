// The linear layer for AVX2. Each 64-byte vector of packed weights is two registers: outputs 0 to 7
// of a group, and 8 to 15; a kernel computes one such half.

#include <immintrin.h>

#include "kernels/linear/linear_kernels.h"

namespace troupe {
namespace {

constexpr int kHalfLanes = 8;
constexpr int kRows = 4;  // activations that one pass over the weights serves
// Up to this number of rows weights are used as they stand; above, they are expanded to words
// first.
constexpr uint32_t kFewRows = 4;
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

// Exact below 2^51: an integer added to the bits of 1.5 * 2^52 counts units of that double.
inline __m256d to_double(__m256i sums) {
  const __m256i magic = _mm256_set1_epi64x(0x4338000000000000);
  return _mm256_sub_pd(_mm256_castsi256_pd(_mm256_add_epi64(sums, magic)),
                       _mm256_castsi256_pd(magic));
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
  float* out = h.call.out + m * h.call.out_stride + n;
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

// R rows from m on with kNibble weights. Products of 4-bit quants and 6-bit digits: the pair sums
// of a whole block fit an int16 (15 * 63 * 2 * 8 = 15,120).
template <int R>
void nibble_rows(const Half& half, uint32_t m) {
  const LinearActivations& a = half.call.activations;
  const uint8_t* chunk = half.call.weights.data + half.group * half.call.weights.group_bytes;
  const __m256i mask = _mm256_set1_epi8(15);
  const __m256i ones = _mm256_set1_epi16(1);
  const __m256i digit = _mm256_set1_epi16(1 << kActivationDigitBits);
  const size_t step = size_t{a.tile_rows} * kLinearChunk;
  WideSums wide[R];
  for (uint32_t c = 0; c < a.chunks; ++c, chunk += kNibbleChunkBytes) {
    __m256i dot[R];
    for (int i = 0; i < R; ++i) dot[i] = _mm256_set1_epi32(INT32_MIN);
    for (uint32_t b = 0; b < 2; ++b) {
      __m256i h[R], l[R];
#pragma GCC unroll 4
      for (int i = 0; i < R; ++i) h[i] = l[i] = _mm256_setzero_si256();
      for (uint32_t r = 0; r < 4; ++r) {
        const __m256i raw = load(chunk + b * 256 + r * 64 + half.half * 32);
        const __m256i first = _mm256_and_si256(raw, mask);
        const __m256i second = _mm256_and_si256(_mm256_srli_epi16(raw, 4), mask);
#pragma GCC unroll 4
        for (int i = 0; i < R; ++i) {
          const size_t at = digits_at(a, m + i) + c * step + b * 32 + r * 8;
          h[i] = _mm256_add_epi16(h[i], _mm256_maddubs_epi16(first, broadcast(a.high + at)));
          l[i] = _mm256_add_epi16(l[i], _mm256_maddubs_epi16(first, broadcast(a.low + at)));
          h[i] = _mm256_add_epi16(h[i], _mm256_maddubs_epi16(second, broadcast(a.high + at + 4)));
          l[i] = _mm256_add_epi16(l[i], _mm256_maddubs_epi16(second, broadcast(a.low + at + 4)));
        }
      }
      const uint8_t* scales = chunk + kNibbleScalesAt + b * 64 + half.half * 16;
      const __m256i scale = lanes_of(scales);
      const __m256i offset = pair_of(scales + 32);
#pragma GCC unroll 4
      for (int i = 0; i < R; ++i) {
        const __m256i sum = broadcast(a.sums + (m + i) * a.sum_stride + 4 * c + 2 * b);
        const __m256i s =
            _mm256_add_epi32(_mm256_madd_epi16(h[i], digit), _mm256_madd_epi16(l[i], ones));
        dot[i] = _mm256_add_epi32(dot[i], _mm256_mullo_epi32(s, scale));
        dot[i] = _mm256_add_epi32(dot[i], _mm256_madd_epi16(sum, offset));
      }
    }
    for (int i = 0; i < R; ++i) wide[i].add(dot[i]);
  }
  for (int i = 0; i < R; ++i) store_wide(half, m + i, wide[i]);
}

// R rows from m on with kByte weights. A pair sum fits an int16 (255 * 63 * 2 = 32,130); two do
// not.
template <int R>
void byte_rows(const Half& half, uint32_t m) {
  const LinearActivations& a = half.call.activations;
  const uint8_t* chunk = half.call.weights.data + half.group * half.call.weights.group_bytes;
  const __m256i ones = _mm256_set1_epi16(1);
  const __m256i digit = _mm256_set1_epi16(1 << kActivationDigitBits);
  const size_t step = size_t{a.tile_rows} * kLinearChunk;
  __m256i even[R], odd[R];
  for (int i = 0; i < R; ++i) even[i] = odd[i] = _mm256_setzero_si256();
  for (uint32_t c = 0; c < a.chunks; ++c, chunk += kByteChunkBytes)
    for (uint32_t b = 0; b < 2; ++b) {
      __m256i dot[R];
#pragma GCC unroll 4
      for (int i = 0; i < R; ++i)
        dot[i] = _mm256_madd_epi16(broadcast(a.sums + (m + i) * a.sum_stride + 4 * c + 2 * b),
                                   _mm256_set1_epi16(-kByteOffset));
      for (uint32_t r = 0; r < 8; ++r) {
        const __m256i u = load(chunk + b * 512 + r * 64 + half.half * 32);
#pragma GCC unroll 4
        for (int i = 0; i < R; ++i) {
          const size_t at = digits_at(a, m + i) + c * step + b * 32 + r * 4;
          const __m256i h = _mm256_maddubs_epi16(u, broadcast(a.high + at));
          const __m256i l = _mm256_maddubs_epi16(u, broadcast(a.low + at));
          dot[i] = _mm256_add_epi32(dot[i], _mm256_madd_epi16(h, digit));
          dot[i] = _mm256_add_epi32(dot[i], _mm256_madd_epi16(l, ones));
        }
      }
      const __m256i scale = lanes_of(chunk + kByteScalesAt + b * 32 + half.half * 16);
      const __m256i odd_scale = _mm256_srli_epi64(scale, 32);
#pragma GCC unroll 4
      for (int i = 0; i < R; ++i) {
        even[i] = _mm256_add_epi64(even[i], _mm256_mul_epi32(dot[i], scale));
        const __m256i odd_dot = _mm256_srli_epi64(dot[i], 32);
        odd[i] = _mm256_add_epi64(odd[i], _mm256_mul_epi32(odd_dot, odd_scale));
      }
    }
  for (int i = 0; i < R; ++i) store_even_odd(half, m + i, even[i], odd[i]);
}

// R rows from m on with the group's weights as words, both halves: a broadcast serves two products.
template <int R>
void word_rows(const LinearCall& call, const uint8_t* words, uint32_t group, uint32_t m) {
  const LinearActivations& a = call.activations;
  WideSums wide[R][2];
  for (uint32_t c = 0; c < a.chunks; ++c) {
    const int16_t* x = a.words + m * a.word_stride + c * kLinearChunk;
    const uint8_t* w = words + c * kWordChunkBytes;
    __m256i dot[R][2];
#pragma GCC unroll 4
    for (int i = 0; i < R; ++i) dot[i][0] = dot[i][1] = _mm256_set1_epi32(INT32_MIN);
    for (int t = 0; t < 32; ++t) {
      const __m256i w0 = load(w + t * 64);
      const __m256i w1 = load(w + t * 64 + 32);
#pragma GCC unroll 4
      for (int i = 0; i < R; ++i) {
        const __m256i pair = broadcast(x + i * a.word_stride + t * 2);
        dot[i][0] = _mm256_add_epi32(dot[i][0], _mm256_madd_epi16(w0, pair));
        dot[i][1] = _mm256_add_epi32(dot[i][1], _mm256_madd_epi16(w1, pair));
      }
    }
    for (int i = 0; i < R; ++i)
      for (int h = 0; h < 2; ++h) wide[i][h].add(dot[i][h]);
  }
  for (int i = 0; i < R; ++i)
    for (uint32_t h = 0; h < 2; ++h) store_wide({call, group, h}, m + i, wide[i][h]);
}

// One group of kNibble weights as kWord.
void expand_nibbles(const uint8_t* chunk, uint32_t chunks, uint8_t* words) {
  const __m256i mask = _mm256_set1_epi16(15);
  for (uint32_t c = 0; c < chunks; ++c, chunk += kNibbleChunkBytes)
    for (uint32_t b = 0; b < 2; ++b)
      for (uint32_t h = 0; h < 2; ++h) {
        const uint8_t* scales = chunk + kNibbleScalesAt + b * 64 + h * 16;
        const __m256i scale = pair_of(scales);
        const __m256i offset = pair_of(scales + 32);
        for (uint32_t r = 0; r < 4; ++r) {
          const __m256i raw = load(chunk + b * 256 + r * 64 + h * 32);
          const __m256i quants[4] = {
              _mm256_and_si256(raw, mask), _mm256_and_si256(_mm256_srli_epi16(raw, 8), mask),
              _mm256_and_si256(_mm256_srli_epi16(raw, 4), mask), _mm256_srli_epi16(raw, 12)};
          uint8_t* to = words + c * kWordChunkBytes + b * 1024 + r * 256 + h * 32;
          for (int i = 0; i < 4; ++i)
            _mm256_store_si256(reinterpret_cast<__m256i*>(to + i * 64),
                               _mm256_add_epi16(_mm256_mullo_epi16(quants[i], scale), offset));
        }
      }
}

void word_group(const LinearCall& call, uint32_t group) {
  const LinearWeights& w = call.weights;
  const uint8_t* words = w.data + group * w.group_bytes;
  if (w.format == LinearFormat::kNibble) {
    expand_nibbles(words, w.chunks, call.scratch);
    words = call.scratch;
  }
  const uint32_t rows = call.activations.rows;
  for (uint32_t m = 0; m < rows; m += kRows) switch (rows - m) {
      case 1:
        return word_rows<1>(call, words, group, m);
      case 2:
        return word_rows<2>(call, words, group, m);
      case 3:
        return word_rows<3>(call, words, group, m);
      default:
        word_rows<kRows>(call, words, group, m);
    }
}

void nibble_half(const Half& half) {
  switch (half.call.activations.rows) {
    case 1:
      return nibble_rows<1>(half, 0);
    case 2:
      return nibble_rows<2>(half, 0);
    case 3:
      return nibble_rows<3>(half, 0);
    default:
      return nibble_rows<4>(half, 0);
  }
}

void byte_half(const Half& half) {
  const uint32_t rows = half.call.activations.rows;
  for (uint32_t m = 0; m < rows; m += kRows) switch (rows - m) {
      case 1:
        return byte_rows<1>(half, m);
      case 2:
        return byte_rows<2>(half, m);
      case 3:
        return byte_rows<3>(half, m);
      default:
        byte_rows<kRows>(half, m);
    }
}

}  // namespace

void linear_avx2(const LinearCall& call) {
  const LinearFormat format = call.weights.format;
  const bool few = format == LinearFormat::kNibble && call.activations.rows <= kFewRows;
  for (uint32_t g = call.group_begin; g < call.group_end; ++g) {
    if (!few && format != LinearFormat::kByte) {
      word_group(call, g);
      continue;
    }
    for (uint32_t h = 0; h < 2; ++h) few ? nibble_half({call, g, h}) : byte_half({call, g, h});
  }
}

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
    const auto bytes = [&](const __m256i v[4]) {
      const __m256i packed =
          _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
      return _mm256_permutevar8x32_epi32(packed, in_order);
    };
    const size_t digits =
        at + size_t{k / kLinearChunk} * out.tile_rows * kLinearChunk + k % kLinearChunk;
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out.high + digits), bytes(high));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out.low + digits), bytes(low));
    for (int i = 0; i < 4; i += 2)
      _mm256_storeu_si256(
          reinterpret_cast<__m256i*>(words + k + 8 * i),
          _mm256_permute4x64_epi64(_mm256_packs_epi32(swapped[i], swapped[i + 1]), 0xD8));
    const __m256i sum =
        _mm256_add_epi32(_mm256_add_epi32(a[0], a[1]), _mm256_add_epi32(a[2], a[3]));
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), sum);
    int32_t total = 0;
    for (const int32_t s : lanes) total += s;
    sums[k / kLinearBlock * 2] = static_cast<int16_t>(total >> 1);
    sums[k / kLinearBlock * 2 + 1] = static_cast<int16_t>(total - (total >> 1));
  }
}

}  // namespace troupe
