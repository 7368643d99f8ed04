#pragma once
// The AVX2 kernel for few rows and weights of 4 and 5 bits with a scale, and perhaps an offset, per
// block of 32 inputs: kNibble, kFive and kFiveCentred; and their expansion to words.

#ifdef __AVX2__  // nothing for a compiler that was not told of it

#include "kernels/cpu/linear_avx2_vectors.h"

namespace troupe {
namespace {

// S and B of a block, twice in each lane.
struct BlockPairs {
  __m256i scale, offset;
};
template <LinearFormat kFormat>
inline BlockPairs block_pairs(const uint8_t* chunk, uint32_t block, uint32_t half) {
  const uint8_t* scales = chunk + linear_scales_at(kFormat, block) + half * 16;
  const __m256i scale = pair_of(scales);
  if constexpr (kFormat == LinearFormat::kFiveCentred) {
    static_assert(kFiveOffset == 1 << 4);
    return {scale, _mm256_sub_epi16(_mm256_setzero_si256(), _mm256_slli_epi16(scale, 4))};
  } else {
    return {scale, pair_of(scales + 32)};
  }
}

// The fifth bits of a block; nothing where there are none.
template <LinearFormat kFormat>
inline __m256i block_plane(const uint8_t* chunk, uint32_t block, uint32_t half) {
  if constexpr (kFormat == LinearFormat::kNibble) {
    return _mm256_setzero_si256();
  } else {
    return load(chunk + kFiveBitsAt + block * 64 + half * 32);
  }
}

// Eight inputs as bytes, a quad each in `first` and `second`. Takes the two lowest bits of each
// byte of the plane, and moves the next ones there.
template <LinearFormat kFormat>
inline void next_quants(const uint8_t* vector, __m256i& plane, __m256i& first, __m256i& second) {
  const __m256i raw = load(vector);
  const __m256i mask = _mm256_set1_epi8(15);
  first = _mm256_and_si256(raw, mask);
  second = _mm256_and_si256(_mm256_srli_epi16(raw, 4), mask);
  if constexpr (kFormat != LinearFormat::kNibble) {
    const __m256i bit = _mm256_set1_epi8(16);
    first = _mm256_or_si256(first, _mm256_and_si256(_mm256_slli_epi16(plane, 4), bit));
    second = _mm256_or_si256(second, _mm256_and_si256(_mm256_slli_epi16(plane, 3), bit));
    plane = _mm256_srli_epi16(plane, 2);
  }
}

// R rows from m on. Products of quants and 6-bit digits: the pair sums of a whole block fit an
// int16 (31 * 63 * 2 * 8 = 31,248).
template <LinearFormat kFormat, int R>
void block_rows(const Half& half, uint32_t m) {
  const LinearActivations& a = half.call.activations;
  const uint8_t* chunk = half.call.weights.data + half.group * half.call.weights.group_bytes;
  const __m256i ones = _mm256_set1_epi16(1);
  const __m256i digit = _mm256_set1_epi16(1 << kActivationDigitBits);
  const size_t step = size_t{a.tile_rows} * kLinearChunk;
  WideSums wide[R];
  for (uint32_t c = 0; c < a.chunks; ++c, chunk += linear_chunk_bytes(kFormat)) {
    prefetch_next<linear_chunk_bytes(kFormat)>(half, chunk);
    __m256i dot[R];
    for (int i = 0; i < R; ++i) dot[i] = _mm256_set1_epi32(INT32_MIN);
    for (uint32_t b = 0; b < 2; ++b) {
      __m256i h[R], l[R];
#pragma GCC unroll 4
      for (int i = 0; i < R; ++i) h[i] = l[i] = _mm256_setzero_si256();
      __m256i plane = block_plane<kFormat>(chunk, b, half.half);
      for (uint32_t r = 0; r < 4; ++r) {
        __m256i first, second;
        next_quants<kFormat>(chunk + b * 256 + r * 64 + half.half * 32, plane, first, second);
#pragma GCC unroll 4
        for (int i = 0; i < R; ++i) {
          const size_t at = digits_at(a, m + i) + c * step + b * 32 + r * 8;
          h[i] = _mm256_add_epi16(h[i], _mm256_maddubs_epi16(first, broadcast(a.high + at)));
          l[i] = _mm256_add_epi16(l[i], _mm256_maddubs_epi16(first, broadcast(a.low + at)));
          h[i] = _mm256_add_epi16(h[i], _mm256_maddubs_epi16(second, broadcast(a.high + at + 4)));
          l[i] = _mm256_add_epi16(l[i], _mm256_maddubs_epi16(second, broadcast(a.low + at + 4)));
        }
      }
      const BlockPairs f = block_pairs<kFormat>(chunk, b, half.half);
      const __m256i scale = _mm256_srai_epi32(f.scale, 16);
#pragma GCC unroll 4
      for (int i = 0; i < R; ++i) {
        const __m256i sum = broadcast(a.sums + (m + i) * a.sum_stride + 4 * c + 2 * b);
        const __m256i s =
            _mm256_add_epi32(_mm256_madd_epi16(h[i], digit), _mm256_madd_epi16(l[i], ones));
        dot[i] = _mm256_add_epi32(dot[i], _mm256_mullo_epi32(s, scale));
        dot[i] = _mm256_add_epi32(dot[i], _mm256_madd_epi16(sum, f.offset));
      }
    }
    for (int i = 0; i < R; ++i) wide[i].add(dot[i]);
  }
  for (int i = 0; i < R; ++i) store_wide(half, m + i, wide[i]);
}

// One group as kWord.
template <LinearFormat kFormat>
void expand_blocks(const uint8_t* chunk, uint32_t chunks, uint8_t* words) {
  constexpr size_t kChunkBytes = linear_chunk_bytes(kFormat);
  const __m256i byte = _mm256_set1_epi16(255);
  for (uint32_t c = 0; c < chunks; ++c, chunk += kChunkBytes) {
    prefetch_lines<(kChunkBytes + 63) / 64>(chunk + chunks * kChunkBytes);  // of the next group
    for (uint32_t b = 0; b < 2; ++b)
      for (uint32_t h = 0; h < 2; ++h) {
        const BlockPairs f = block_pairs<kFormat>(chunk, b, h);
        __m256i plane = block_plane<kFormat>(chunk, b, h);
        for (uint32_t r = 0; r < 4; ++r) {
          __m256i first, second;
          next_quants<kFormat>(chunk + b * 256 + r * 64 + h * 32, plane, first, second);
          const __m256i quants[4] = {_mm256_and_si256(first, byte), _mm256_srli_epi16(first, 8),
                                     _mm256_and_si256(second, byte), _mm256_srli_epi16(second, 8)};
          uint8_t* to = words + c * kWordChunkBytes + b * 1024 + r * 256 + h * 32;
          for (int i = 0; i < 4; ++i)
            store(to + i * 64, _mm256_add_epi16(_mm256_mullo_epi16(quants[i], f.scale), f.offset));
        }
      }
  }
}

template <LinearFormat kFormat>
void block_half(const Half& half) {
  switch (half.call.activations.rows) {
    case 1:
      return block_rows<kFormat, 1>(half, 0);
    case 2:
      return block_rows<kFormat, 2>(half, 0);
    case 3:
      return block_rows<kFormat, 3>(half, 0);
    default:
      return block_rows<kFormat, 4>(half, 0);
  }
}

}  // namespace
}  // namespace troupe

#endif  // __AVX2__
