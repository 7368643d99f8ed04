#pragma once
// Attention over KV in binary16.
// `V` is a vector of sixteen floats, see ops_vector.h.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/ops_vector_attention.h"

namespace troupe::ops_vector {

// The elements of one dim of `Q` queries, which stand `stride` floats apart. One pointer for three
// of them, hidden from the compiler, which would otherwise compute each address anew, in more
// registers than there are.
template <int Q>
struct DimOfQueries {
  static constexpr int kPointers = (Q + 2) / 3;
  const float* at[kPointers];
  size_t stride;

  DimOfQueries(const float* first, size_t floats) : stride(floats) {
#pragma GCC unroll 4
    for (int i = 0; i < kPointers; ++i) {
      at[i] = first + 3 * i * floats;
      asm("" : "+r"(at[i]));
    }
  }
  float operator[](int query) const {
    return at[query / 3][static_cast<size_t>(query % 3) * stride];
  }
  void next_dim() {
#pragma GCC unroll 4
    for (int i = 0; i < kPointers; ++i) {
      ++at[i];
      asm("" : "+r"(at[i]));
    }
  }
};

// Scores of `Q` queries with the tokens of `B` consecutive blocks.
template <class V, int Q, int B>
inline void score_blocks(const TileView& view, uint32_t query, uint32_t block) {
  const uint16_t* keys[B];
  const uint16_t* next[B];
  for (int b = 0; b < B; ++b) {
    keys[b] = view.keys<uint16_t>(block + b);
    next[b] = block + B + b < view.count ? view.keys<uint16_t>(block + B + b)
                                         : view.values<uint16_t>((block + B + b) % view.count);
  }
  DimOfQueries<Q> x(view.scaled + size_t{query} * view.padded, view.padded);
  V sums[Q][B];
#pragma GCC unroll 8
  for (int q = 0; q < Q; ++q)
#pragma GCC unroll 4
    for (int b = 0; b < B; ++b) sums[q][b] = V::all(0.0F);
  const size_t head_dim = view.tile->head_dim;
  for (size_t d = 0; d < head_dim; ++d, x.next_dim()) {
    V k[B];
#pragma GCC unroll 4
    for (int b = 0; b < B; ++b) k[b] = V::load_stored(keys[b] + d * kKvBlockTokens);
    if (d % 2 == 0) {  // a cache line holds the keys of two dims
#pragma GCC unroll 4
      for (int b = 0; b < B; ++b) fetch(next[b] + d * kKvBlockTokens);
    }
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q) {
      const V one = V::all(x[q]);
#pragma GCC unroll 4
      for (int b = 0; b < B; ++b) sums[q][b] = V::fma(one, k[b], sums[q][b]);
    }
  }
  float* scores = view.scores + size_t{query} * kSegmentTokens + size_t{block} * kKvBlockTokens;
#pragma GCC unroll 8
  for (int q = 0; q < Q; ++q)
#pragma GCC unroll 4
    for (int b = 0; b < B; ++b) sums[q][b].store(scores + q * kSegmentTokens + b * kKvBlockTokens);
}

// The weighted sum of values of `Q` queries, over `C` vectors of dims starting at `dim`.
template <class V, int Q, int C>
inline void weigh_columns(const TileView& view, uint32_t query, uint32_t dim, float* partials,
                          size_t partial_stride) {
  V sums[Q][C];
#pragma GCC unroll 8
  for (int q = 0; q < Q; ++q)
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) sums[q][c] = V::all(0.0F);
  const float* weights = view.scores + size_t{query} * kSegmentTokens;
  const size_t padded = view.padded;
  constexpr uint32_t kAhead = 2;  // blocks
  for (uint32_t begin = 0; begin < view.tokens; begin += kKvBlockTokens) {
    const uint32_t block = begin / kKvBlockTokens;
    const uint16_t* values = view.values<uint16_t>(block) + dim;
    const uint16_t* next =
        view.values<uint16_t>(block + kAhead < view.count ? block + kAhead : block) + dim;
    const size_t count =
        view.tokens - begin < kKvBlockTokens ? view.tokens - begin : kKvBlockTokens;
    // 64-bit indices: of 32 bits, each would be computed anew, as it may wrap around.
    for (size_t t = 0; t < count; ++t) {
      V v[C];
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) v[c] = V::load_stored(values + t * padded + c * 16);
#pragma GCC unroll 2
      for (int c = 0; c < C; c += 2) fetch(next + t * padded + c * 16);
#pragma GCC unroll 8
      for (int q = 0; q < Q; ++q) {
        const V p = V::all(weights[static_cast<size_t>(q) * kSegmentTokens + begin + t]);
#pragma GCC unroll 4
        for (int c = 0; c < C; ++c) sums[q][c] = V::fma(p, v[c], sums[q][c]);
      }
    }
  }
  float* out = partials + query * partial_stride + 16 + dim;
#pragma GCC unroll 8
  for (int q = 0; q < Q; ++q)
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) sums[q][c].store(out + q * partial_stride + c * 16);
}

template <class V, int Q>
inline void score_queries(const TileView& view, uint32_t query) {
  constexpr int kBlocks = Q <= V::kRows / 2 ? 2 * V::kColumns : V::kColumns;
  uint32_t block = 0;
  for (; block + kBlocks <= view.count; block += kBlocks)
    score_blocks<V, Q, kBlocks>(view, query, block);
  for (; block < view.count; ++block) score_blocks<V, Q, 1>(view, query, block);
}

template <class V, int Q>
inline void weigh_queries(const TileView& view, uint32_t query, float* partials,
                          size_t partial_stride) {
  constexpr uint32_t kDims = 16 * (Q <= V::kRows / 2 ? 2 * V::kColumns : V::kColumns);
  uint32_t dim = 0;
  for (; dim + kDims <= view.padded; dim += kDims)
    weigh_columns<V, Q, kDims / 16>(view, query, dim, partials, partial_stride);
  for (; dim < view.padded; dim += 16)
    weigh_columns<V, Q, 1>(view, query, dim, partials, partial_stride);
}

template <class V>
struct ScoreStep {
  const TileView& view;
  template <int Q>
  void run(uint32_t query) const {
    score_queries<V, Q>(view, query);
  }
};

template <class V>
struct WeighStep {
  const TileView& view;
  float* partials;
  size_t partial_stride;
  template <int Q>
  void run(uint32_t query) const {
    weigh_queries<V, Q>(view, query, partials, partial_stride);
  }
};

template <class V>
void attention_f16(const AttentionTile& tile, float* partials, float* scratch) {
  const TileView view = view_of(tile, scratch);
  if (view.tokens == 0) return nothing_seen(tile, partials);
  const uint32_t queries = tile.rows * tile.group;
  const size_t stride = partial_floats(tile.head_dim);
  scale_queries<V>(view);
  over_queries<V, V::kRows>(0, queries, ScoreStep<V>{view});
  soften_queries<V>(view, partials, stride);
  over_queries<V, V::kRows>(0, queries, WeighStep<V>{view, partials, stride});
}

}  // namespace troupe::ops_vector
