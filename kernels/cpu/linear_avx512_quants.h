#pragma once
// From packed bits to bytes and words of weights: what the AVX-512 kernels for 5 and 6 bits share
// with those in tiles.

#ifdef __AVX512BW__  // nothing for a compiler that was not told of it

#include "kernels/cpu/linear_avx512_vectors.h"

namespace troupe {
namespace {

// low | those bits of each byte of `plane` that begin at kFrom and stand at kMask, after they have
// moved to bit 4.
template <int kFrom, int kMask>
inline __m512i add_bits(__m512i low, __m512i plane) {
  __m512i moved = plane;
  if constexpr (kFrom < 4) moved = _mm512_slli_epi16(plane, 4 - kFrom);
  if constexpr (kFrom > 4) moved = _mm512_srli_epi16(plane, kFrom - 4);
  return _mm512_ternarylogic_epi32(low, moved, _mm512_set1_epi8(kMask), 0xF8);  // a | (b & c)
}

// The lower four bits of 16 inputs from two vectors: one quad of inputs in each u[i].
inline void low_quants(const uint8_t* vectors, __m512i u[4]) {
  const __m512i mask = _mm512_set1_epi8(15);
  const __m512i first = load(vectors);
  const __m512i second = load(vectors + 64);
  u[0] = _mm512_and_si512(first, mask);
  u[1] = _mm512_and_si512(_mm512_srli_epi16(first, 4), mask);
  u[2] = _mm512_and_si512(second, mask);
  u[3] = _mm512_and_si512(_mm512_srli_epi16(second, 4), mask);
}

// kFive and kFiveCentred: half kHalf of a block of 32 inputs.
template <int kHalf>
inline void five_quants(const uint8_t* vectors, __m512i plane, __m512i u[4]) {
  low_quants(vectors + kHalf * 128, u);
  u[0] = add_bits<4 * kHalf, 16>(u[0], plane);
  u[1] = add_bits<4 * kHalf + 1, 16>(u[1], plane);
  u[2] = add_bits<4 * kHalf + 2, 16>(u[2], plane);
  u[3] = add_bits<4 * kHalf + 3, 16>(u[3], plane);
}

// kSix: a sub-block.
inline void six_quants(const uint8_t* sub, __m512i u[4]) {
  low_quants(sub, u);
  const __m512i plane = load(sub + kSixBitsAt);
  u[0] = add_bits<0, 48>(u[0], plane);
  u[1] = add_bits<2, 48>(u[1], plane);
  u[2] = add_bits<4, 48>(u[2], plane);
  u[3] = add_bits<6, 48>(u[3], plane);
}

// S and B of a block, twice in each lane.
struct BlockPairs {
  __m512i scale, offset;
};
template <LinearFormat kFormat>
inline BlockPairs block_pairs(const uint8_t* chunk, uint32_t block) {
  const uint8_t* scales = chunk + linear_scales_at(kFormat, block);
  const __m512i scale = pair_of(scales);
  if constexpr (kFormat == LinearFormat::kFiveCentred) {
    static_assert(kFiveOffset == 1 << 4);
    return {scale, _mm512_sub_epi16(_mm512_setzero_si512(), _mm512_slli_epi16(scale, 4))};
  } else {
    return {scale, pair_of(scales + 32)};
  }
}

// T of a chunk's sub-blocks: [0] has pairs of those of sub-blocks 0 and 1, [1] of 2 and 3.
inline void six_factors(const uint8_t* chunk, __m512i pairs[2]) {
  const __m512i bytes = load(chunk + kSixFactorsAt);
  pairs[0] = _mm512_srai_epi16(_mm512_slli_epi16(bytes, 8), 8);
  pairs[1] = _mm512_srai_epi16(bytes, 8);
}

// u * scale + offset of four quads: out[2i] and out[2i + 1] are the words of quad i, as kWord
// orders them.
inline void quads_to_words(const __m512i u[4], __m512i scale, __m512i offset, __m512i out[8]) {
  const __m512i byte = _mm512_set1_epi16(255);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    out[2 * i] = _mm512_and_si512(u[i], byte);
    out[2 * i + 1] = _mm512_srli_epi16(u[i], 8);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) out[i] = _mm512_add_epi16(_mm512_mullo_epi16(out[i], scale), offset);
}

// Calls store(first input of 16, their words) four times for a chunk of kFive or kFiveCentred.
template <LinearFormat kFormat, class Store>
inline void expand_five_chunk(const uint8_t* chunk, Store store) {
#pragma GCC unroll 2
  for (uint32_t b = 0; b < 2; ++b) {
    const BlockPairs f = block_pairs<kFormat>(chunk, b);
    const __m512i plane = load(chunk + kFiveBitsAt + b * 64);
    __m512i u[4], words[8];
    five_quants<0>(chunk + b * 256, plane, u);
    quads_to_words(u, f.scale, f.offset, words);
    store(b * 32, words);
    five_quants<1>(chunk + b * 256, plane, u);
    quads_to_words(u, f.scale, f.offset, words);
    store(b * 32 + 16, words);
  }
}

// The same for V of kSix.
template <class Store>
inline void expand_six_chunk(const uint8_t* chunk, Store store) {
  __m512i factors[2];
  six_factors(chunk, factors);
#pragma GCC unroll 4
  for (uint32_t s = 0; s < 4; ++s) {
    const __m512i pair = factors[s / 2];
    const __m512i scale =
        s % 2 == 0 ? _mm512_or_si512(_mm512_and_si512(pair, _mm512_set1_epi32(0xFFFF)),
                                     _mm512_slli_epi32(pair, 16))
                   : _mm512_mask_blend_epi16(0xAAAAAAAA, _mm512_srli_epi32(pair, 16), pair);
    static_assert(kSixOffset == 1 << 5);
    const __m512i offset = _mm512_sub_epi16(_mm512_setzero_si512(), _mm512_slli_epi16(scale, 5));
    __m512i u[4], words[8];
    six_quants(chunk + s * kSixSubBytes, u);
    quads_to_words(u, scale, offset, words);
    store(s * 16, words);
  }
}

}  // namespace
}  // namespace troupe

#endif  // __AVX512BW__
