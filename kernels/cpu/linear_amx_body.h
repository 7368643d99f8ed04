#pragma once
// The linear layer in 8-bit tiles: A = 64 * high + low and W in bytes, so that each pair of digits
// is one tile product, and the pairs are combined once per output. `Tiles` has the tile
// instructions; a test brings its own in plain C++, so that layout and arithmetic are proved on any
// machine.

#ifdef __AVX512BW__  // nothing for a compiler that was not told of it

#include "kernels/cpu/linear_amx_expand.h"

namespace troupe {
namespace {

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
  const GroupOutputs to(call, group);
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
    to.store(m + i, half[0], half[1]);
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

// The sums of 16 rows and outputs of kSix weights so far, integers below 2^53.
struct SixTotals {
  alignas(64) double sums[kTileRows][kLinearLanes];
};

// Adds the products over 256 inputs, int32 modulo 2^32 and in the end, times D.
inline void add_six_products(const Products<2>& p, const uint8_t* scales, SixTotals& totals) {
  const __m512i scale = lanes_of(scales);
  const __m512d scale0 = _mm512_cvtepi32_pd(_mm512_castsi512_si256(scale));
  const __m512d scale1 = _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(scale, 1));
  for (uint32_t i = 0; i < kTileRows; ++i) {
    const auto digit_of_a = [&](int a) {
      return _mm512_add_epi32(_mm512_slli_epi32(load(p.sums[2 * a][i]), 8),
                              load(p.sums[2 * a + 1][i]));
    };
    const __m512i sums =
        _mm512_add_epi32(_mm512_slli_epi32(digit_of_a(0), kActivationDigitBits), digit_of_a(1));
    double* total = totals.sums[i];
    const __m512d sums0 = _mm512_cvtepi32_pd(_mm512_castsi512_si256(sums));
    const __m512d sums1 = _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(sums, 1));
    _mm512_store_pd(total, _mm512_fmadd_pd(sums0, scale0, _mm512_load_pd(total)));
    _mm512_store_pd(total + 8, _mm512_fmadd_pd(sums1, scale1, _mm512_load_pd(total + 8)));
  }
}

// tile_group() for kSix: its two digits are those of V, so that the products are taken out and
// multiplied by D every four chunks.
template <class Tiles>
void six_tile_group(const LinearCall& call, uint32_t group) {
  const LinearActivations& a = call.activations;
  const uint8_t* scales = call.weights.data + group * call.weights.group_bytes + kSixScalesAt;
  auto* tiles = reinterpret_cast<int8_t*>(call.scratch);
  constexpr size_t kStep = size_t{2} * kTileBytes;
  const GroupOutputs to(call, group);
  expand_chunk(call, group, 0, tiles);
  for (uint32_t m = 0; m < a.rows; m += kTileRows) {
    const int8_t* high = a.high + m / kTileRows * a.tile_stride;
    const int8_t* low = a.low + m / kTileRows * a.tile_stride;
    SixTotals totals{};
    for (uint32_t c = 0; c < a.chunks; ++c, high += kTileBytes, low += kTileBytes) {
      if (c % kSixSuperChunks == 0) zero_sums<Tiles, 2>();
      if (m == 0 && c + 1 < a.chunks) expand_chunk(call, group, c + 1, tiles + (c + 1) * kStep);
      prefetch_tile(high + kTileBytes);
      prefetch_tile(low + kTileBytes);
      multiply_two<Tiles>(high, low, tiles + c * kStep);
      if (c % kSixSuperChunks != kSixSuperChunks - 1) continue;
      Products<2> products;
      read_sums<Tiles, 2>(products);
      add_six_products(products, scales + c / kSixSuperChunks * kSixSuperBytes, totals);
    }
    for (uint32_t i = 0; i < kTileRows && m + i < a.rows; ++i)
      to.store(m + i, _mm512_load_pd(totals.sums[i]), _mm512_load_pd(totals.sums[i] + 8));
  }
}

template <class Tiles>
void linear_tiles(const LinearCall& call) {
  Tiles::begin();
  for (uint32_t g = call.group_begin; g < call.group_end; ++g) {
    switch (call.weights.format) {
      case LinearFormat::kByte:
        tile_group<Tiles, 3>(call, g);
        break;
      case LinearFormat::kSix:
        six_tile_group<Tiles>(call, g);
        break;
      default:
        tile_group<Tiles, 2>(call, g);
    }
  }
  Tiles::end();
}

}  // namespace
}  // namespace troupe

#endif  // __AVX512BW__
