#pragma once
// The linear layer in 8-bit tiles: A = 64 * high + low and W in bytes, so that each pair of digits
// is one tile product, and the pairs are combined once per output. `Tiles` has the tile
// instructions; a test brings its own in plain C++, so that layout and arithmetic are proved on any
// machine.

#ifdef __AVX512BW__  // nothing for a compiler that was not told of it

#include "kernels/cpu/linear_avx512_vectors.h"

namespace troupe {
namespace {

constexpr uint32_t kTileRows = 16;
constexpr uint32_t kTileBytes = 1024;  // 16 rows of 64 inputs, or 16 quads of inputs of 16 outputs

// W is two digits where |W| <= 16383 (W = 256 * w1 + w0 with w1 signed), and three for kByte
// weights
// (|W| < 2^22); one tile per chunk, group and digit, the signed digit first.

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
  const uint8_t* chunk = w.data + group * w.group_bytes + c * linear_chunk_bytes(w.format);
  if (w.format == LinearFormat::kNibble) return expand_nibble_chunk(chunk, tiles);
  if (w.format == LinearFormat::kWord) return expand_word_chunk(chunk, tiles);
  expand_byte_chunk(chunk, tiles);
}

// Sums of tile products: with D digits of W, [d] is the high digit of A times digit d of W from the
// upper one, [D + d] the low digit of A times it.
template <int Digits>
struct Products {
  alignas(64) int32_t sums[2 * Digits][kTileRows][kLinearLanes];
};

// Combines the products of rows [m, m + rows) in double: every term and sum is an integer below
// 2^53.
template <int Digits>
void store_products(const LinearCall& call, uint32_t group, uint32_t m, const Products<Digits>& p) {
  const uint32_t left = call.activations.rows - m;
  const uint32_t rows = left < kTileRows ? left : kTileRows;
  for (uint32_t i = 0; i < rows; ++i) {
    __m512d half[2];
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      __m512d by_digit[2];
#pragma GCC unroll 2
      for (int a = 0; a < 2; ++a) {
        const auto part = [&](int d) {
          const int32_t* at = p.sums[a * Digits + d][i] + 8 * h;
          return _mm512_cvtepi32_pd(_mm256_load_si256(reinterpret_cast<const __m256i*>(at)));
        };
        by_digit[a] = part(0);
#pragma GCC unroll 2
        for (int d = 1; d < Digits; ++d)
          by_digit[a] = _mm512_fmadd_pd(by_digit[a], _mm512_set1_pd(256), part(d));
      }
      half[h] =
          _mm512_fmadd_pd(by_digit[0], _mm512_set1_pd(1 << kActivationDigitBits), by_digit[1]);
    }
    store_sums(call, group, m + i, half[0], half[1]);
  }
}

inline void prefetch_tile(const int8_t* tile) {
#pragma GCC unroll 16
  for (uint32_t line = 0; line < kTileBytes; line += 64)
    _mm_prefetch(reinterpret_cast<const char*>(tile + line), _MM_HINT_T0);
}

// The two-digit step of one chunk: tiles 0 to 3 gather, 4 to 7 hold digits. The low digit of W is
// unsigned, all others are signed.
template <class Tiles>
void multiply_two(const int8_t* high, const int8_t* low, const int8_t* w) {
  Tiles::template load<4>(high);
  Tiles::template load<6>(w);
  Tiles::template dot_signed<0, 4, 6>();
  Tiles::template load<7>(w + kTileBytes);
  Tiles::template dot_unsigned<1, 4, 7>();
  Tiles::template load<5>(low);
  Tiles::template dot_signed<2, 5, 6>();
  Tiles::template dot_unsigned<3, 5, 7>();
}

// The three-digit step: tiles 0 to 5 gather, 6 holds a digit of A and 7 one of W.
template <class Tiles>
void multiply_three(const int8_t* high, const int8_t* low, const int8_t* w) {
  Tiles::template load<6>(high);
  Tiles::template load<7>(w);
  Tiles::template dot_signed<0, 6, 7>();
  Tiles::template load<7>(w + kTileBytes);
  Tiles::template dot_unsigned<1, 6, 7>();
  Tiles::template load<7>(w + 2 * kTileBytes);
  Tiles::template dot_unsigned<2, 6, 7>();
  Tiles::template load<6>(low);
  Tiles::template dot_unsigned<5, 6, 7>();
  Tiles::template load<7>(w + kTileBytes);
  Tiles::template dot_unsigned<4, 6, 7>();
  Tiles::template load<7>(w);
  Tiles::template dot_signed<3, 6, 7>();
}

template <class Tiles, int Digits>
void zero_sums() {
  Tiles::template zero<0>();
  Tiles::template zero<1>();
  Tiles::template zero<2>();
  Tiles::template zero<3>();
  if constexpr (Digits == 3) {
    Tiles::template zero<4>();
    Tiles::template zero<5>();
  }
}

template <class Tiles, int Digits>
void read_sums(Products<Digits>& p) {
  Tiles::template store<0>(&p.sums[0][0][0]);
  Tiles::template store<1>(&p.sums[1][0][0]);
  Tiles::template store<2>(&p.sums[2][0][0]);
  Tiles::template store<3>(&p.sums[3][0][0]);
  if constexpr (Digits == 3) {
    Tiles::template store<4>(&p.sums[4][0][0]);
    Tiles::template store<5>(&p.sums[5][0][0]);
  }
}

// All rows of one group. The first 16 rows multiply chunk c while the vector unit expands chunk
// c + 1; the others find the weights expanded, in the first or second cache.
template <class Tiles, int Digits>
void tile_group(const LinearCall& call, uint32_t group) {
  const LinearActivations& a = call.activations;
  auto* tiles = reinterpret_cast<int8_t*>(call.scratch);
  constexpr size_t kStep = size_t{Digits} * kTileBytes;
  expand_chunk(call, group, 0, tiles);
  for (uint32_t m = 0; m < a.rows; m += kTileRows) {
    const int8_t* high = a.high + m / kTileRows * a.tile_stride;
    const int8_t* low = a.low + m / kTileRows * a.tile_stride;
    zero_sums<Tiles, Digits>();
    for (uint32_t c = 0; c < a.chunks; ++c, high += kTileBytes, low += kTileBytes) {
      if (m == 0 && c + 1 < a.chunks) expand_chunk(call, group, c + 1, tiles + (c + 1) * kStep);
      // The next tiles follow these, also across the end of 16 rows. A prefetch past the end of all
      // is harmless.
      prefetch_tile(high + kTileBytes);
      prefetch_tile(low + kTileBytes);
      if constexpr (Digits == 2) {
        multiply_two<Tiles>(high, low, tiles + c * kStep);
      } else {
        multiply_three<Tiles>(high, low, tiles + c * kStep);
      }
    }
    Products<Digits> products;
    read_sums<Tiles, Digits>(products);
    store_products<Digits>(call, group, m, products);
  }
}

template <class Tiles>
void linear_tiles(const LinearCall& call) {
  Tiles::begin();
  for (uint32_t g = call.group_begin; g < call.group_end; ++g) {
    if (call.weights.format == LinearFormat::kByte) {
      tile_group<Tiles, 3>(call, g);
    } else {
      tile_group<Tiles, 2>(call, g);
    }
  }
  Tiles::end();
}

}  // namespace
}  // namespace troupe

#endif  // __AVX512BW__
