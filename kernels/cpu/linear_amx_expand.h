#pragma once
// From packed weights to tiles of 8-bit digits.

#ifdef __AVX512BW__  // nothing for a compiler that was not told of it

#include "kernels/cpu/linear_avx512_quants.h"

namespace troupe {
namespace {

constexpr uint32_t kTileRows = 16;
constexpr uint32_t kTileBytes = 1024;  // 16 rows of 64 inputs, or 16 quads of inputs of 16 outputs

// W is two digits where |W| <= 16383 (W = 256 * w1 + w0 with w1 signed), as is V of kSix, and three
// for kByte weights (|W| < 2^22); one tile per chunk, group and digit, the signed digit first.

// Bytes of a quad of inputs from their words: `first` has inputs 0 and 2 of every lane, `second` 1
// and 3. Low bytes, high bytes.
inline __m512i low_bytes(__m512i first, __m512i second) {
  return _mm512_mask_blend_epi8(0xAAAAAAAAAAAAAAAA, first, _mm512_slli_epi16(second, 8));
}
inline __m512i high_bytes(__m512i first, __m512i second) {
  return _mm512_mask_blend_epi8(0xAAAAAAAAAAAAAAAA, _mm512_srli_epi16(first, 8), second);
}

// One quad (a tile row) into the tiles of both digits: first the signed digit's tile.
inline void store_two_digits(__m512i first, __m512i second, int8_t* tile_row) {
  _mm512_store_si512(tile_row, high_bytes(first, second));
  _mm512_store_si512(tile_row + kTileBytes, low_bytes(first, second));
}

inline void expand_nibble_chunk(const uint8_t* chunk, int8_t* tiles) {
  for (int b = 0; b < 2; ++b) {
    const __m512i scale = pair_of(chunk + kNibbleScalesAt + b * 64);
    const __m512i offset = pair_of(chunk + kNibbleScalesAt + b * 64 + 32);
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r, tiles += 128) {
      __m512i w[4];
      nibbles_to_weights(load(chunk + b * 256 + r * 64), scale, offset, w);
      store_two_digits(w[0], w[1], tiles);
      store_two_digits(w[2], w[3], tiles + 64);
    }
  }
}

inline void expand_word_chunk(const uint8_t* chunk, int8_t* tiles) {
  for (int t = 0; t < 16; ++t)
    store_two_digits(load(chunk + t * 128), load(chunk + t * 128 + 64), tiles + t * 64);
}

// q * S has 23 bits: the upper and the lower half of 16 x 16 bit products.
inline void expand_byte_chunk(const uint8_t* chunk, int8_t* tiles) {
  const __m512i sign = _mm512_set1_epi8(-128);
  for (int b = 0; b < 2; ++b) {
    const __m512i scale = pair_of(chunk + kByteScalesAt + b * 32);
#pragma GCC unroll 8
    for (int r = 0; r < 8; ++r, tiles += 64) {
      const __m512i q = _mm512_xor_si512(load(chunk + b * 512 + r * 64), sign);
      const __m512i first = _mm512_srai_epi16(_mm512_slli_epi16(q, 8), 8);
      const __m512i second = _mm512_srai_epi16(q, 8);
      const __m512i low0 = _mm512_mullo_epi16(first, scale);
      const __m512i low1 = _mm512_mullo_epi16(second, scale);
      const __m512i high0 = _mm512_mulhi_epi16(first, scale);
      const __m512i high1 = _mm512_mulhi_epi16(second, scale);
      _mm512_store_si512(tiles, low_bytes(high0, high1));
      _mm512_store_si512(tiles + kTileBytes, high_bytes(low0, low1));
      _mm512_store_si512(tiles + 2 * kTileBytes, low_bytes(low0, low1));
    }
  }
}

inline void expand_chunk(const LinearCall& call, uint32_t group, uint32_t c, int8_t* tiles) {
  const LinearWeights& w = call.weights;
  const uint8_t* chunk = w.data + group * w.group_bytes + linear_chunk_at(w.format, c);
  // 16 inputs from the words of their quads.
  const auto store_16 = [tiles](uint32_t input, const __m512i words[8]) {
#pragma GCC unroll 4
    for (int quad = 0; quad < 4; ++quad)
      store_two_digits(words[2 * quad], words[2 * quad + 1], tiles + input * 16 + quad * 64);
  };
  switch (w.format) {
    case LinearFormat::kNibble:
      return expand_nibble_chunk(chunk, tiles);
    case LinearFormat::kFive:
      return expand_five_chunk<LinearFormat::kFive>(chunk, store_16);
    case LinearFormat::kFiveCentred:
      return expand_five_chunk<LinearFormat::kFiveCentred>(chunk, store_16);
    case LinearFormat::kSix:
      return expand_six_chunk(chunk, store_16);
    case LinearFormat::kByte:
      return expand_byte_chunk(chunk, tiles);
    case LinearFormat::kWord:
      break;
  }
  expand_word_chunk(chunk, tiles);
}

}  // namespace
}  // namespace troupe

#endif  // __AVX512BW__
