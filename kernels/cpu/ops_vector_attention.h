#pragma once
// Attention over vectors of sixteen floats.
// `V` is a vector of sixteen floats, see ops_vector.h.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/ops_vector_rows.h"

namespace troupe::ops_vector {

// --- Attention. A tile's queries are handled in groups of up to V::kRows, so that each converted
// vector of keys or values is used by all of them.

// The tile as the inner loops see it: `scaled` and `scores` are scratch, one row per query.
struct TileView {
  const AttentionTile* tile;
  const uint32_t* blocks;  // from the first one of the segment that row 0 sees a token of
  uint32_t tokens;         // from that block's first to the last one that the last row sees
  uint32_t count;          // of the blocks that hold them
  uint32_t padded;         // head_dim, padded: the stride of `scaled`
  const float* scaled;     // [query][padded]
  float* scores;           // [query][kSegmentTokens]

  const uint16_t* keys(uint32_t block) const {
    return tile->keys + blocks[block] * tile->block_stride;
  }
  const uint16_t* values(uint32_t block) const {
    return tile->values + blocks[block] * tile->block_stride;
  }
};

// Blocks lie apart, where the processor cannot foresee them: those that come next are fetched while
// one is used, the first values while the last keys are.
inline void fetch(const uint16_t* from) {
  __builtin_prefetch(from);
}

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
    keys[b] = view.keys(block + b);
    next[b] = block + B + b < view.count ? view.keys(block + B + b)
                                         : view.values((block + B + b) % view.count);
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
    for (int b = 0; b < B; ++b) k[b] = V::load_half(keys[b] + d * kKvBlockTokens);
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
    const uint16_t* values = view.values(block) + dim;
    const uint16_t* next = view.values(block + kAhead < view.count ? block + kAhead : block) + dim;
    const size_t count =
        view.tokens - begin < kKvBlockTokens ? view.tokens - begin : kKvBlockTokens;
    // 64-bit indices: of 32 bits, each would be computed anew, as it may wrap around.
    for (size_t t = 0; t < count; ++t) {
      V v[C];
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) v[c] = V::load_half(values + t * padded + c * 16);
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

// From scores to weights in place; tokens outside [first, seen) get weight 0, which leaves every
// sum as it is. Nothing is seen when seen <= first.
template <class V>
inline void soften(float* scores, uint32_t first, uint32_t seen, uint32_t tokens, float* partial) {
  if (seen <= first) {
    for (uint32_t t = 0; t < tokens; ++t) scores[t] = 0.0F;
    partial[1] = 0.0F;
    return;
  }
  const uint32_t start = first / 16 * 16;
  const uint32_t whole = seen / 16 * 16;
  for (uint32_t t = 0; t < start; ++t) scores[t] = 0.0F;
  for (uint32_t t = start; t < first; ++t) scores[t] = -__builtin_inff();
  V peak = V::all(-__builtin_inff());
  for (uint32_t t = start; t < whole; t += 16) peak = V::max(V::load(scores + t), peak);
  float greatest = peak.max_lane();
  for (uint32_t t = whole > first ? whole : first; t < seen; ++t)
    greatest = scores[t] > greatest ? scores[t] : greatest;
  const V shift = V::all(greatest);
  V sum = V::all(0.0F);
  for (uint32_t t = start; t < whole; t += 16) {
    const V p = attention_exp16(V::load(scores + t) - shift);
    p.store(scores + t);
    sum = sum + p;
  }
  if (whole < seen) {
    attention_exp16(V::load(scores + whole) - shift).store(scores + whole);
    for (uint32_t t = seen; t < whole + 16; ++t) scores[t] = 0.0F;
    sum = sum + V::load(scores + whole);
  }
  for (uint32_t t = (seen + 15) / 16 * 16; t < tokens; ++t) scores[t] = 0.0F;
  partial[0] = greatest;
  partial[1] = sum.sum_tree();
}

// The first token that a row sees whose last one is `end` - 1.
inline uint32_t first_seen(const AttentionTile& tile, uint32_t end) {
  return tile.window != 0 && end > tile.window ? end - tile.window : 0;
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
void attention_segment(const AttentionTile& tile, float* partials, float* scratch) {
  const uint32_t queries = tile.rows * tile.group;
  const uint32_t padded = padded_head(tile.head_dim);
  const size_t stride = partial_floats(tile.head_dim);
  uint32_t begin = tile.segment * kSegmentTokens;
  uint32_t end = tile.position + tile.rows;
  if (end > begin + kSegmentTokens) end = begin + kSegmentTokens;
  const uint32_t first = first_seen(tile, tile.position + 1) / kKvBlockTokens * kKvBlockTokens;
  if (first > begin) begin = first;
  if (end <= begin) {
    for (uint32_t q = 0; q < queries; ++q) partials[q * stride + 1] = 0.0F;
    return;
  }
  float* scaled = scratch;
  TileView view{.tile = &tile,
                .blocks = tile.blocks + begin / kKvBlockTokens,
                .tokens = end - begin,
                .count = (end - begin + kKvBlockTokens - 1) / kKvBlockTokens,
                .padded = padded,
                .scaled = scaled,
                .scores = scratch + size_t{queries} * padded};
  for (uint32_t q = 0; q < queries; ++q) {
    const float* query =
        tile.query + q / tile.group * tile.query_stride + size_t{q % tile.group} * tile.head_dim;
    for (uint32_t d = 0; d < tile.head_dim; d += 16) {
      const uint32_t dims = tile.head_dim - d < 16 ? tile.head_dim - d : 16;
      (V::load_first(query + d, dims) * V::all(tile.scale)).store(scaled + q * padded + d);
    }
  }
  over_queries<V, V::kRows>(0, queries, ScoreStep<V>{view});
  for (uint32_t q = 0; q < queries; ++q) {
    const uint32_t row_end = tile.position + q / tile.group + 1;
    const uint32_t row_first = first_seen(tile, row_end);
    const uint32_t seen = row_end <= begin ? 0 : row_end - begin;
    soften<V>(view.scores + size_t{q} * kSegmentTokens, row_first <= begin ? 0 : row_first - begin,
              seen < view.tokens ? seen : view.tokens, view.tokens, partials + q * stride);
  }
  over_queries<V, V::kRows>(0, queries, WeighStep<V>{view, partials, stride});
}

template <class V>
void attention_merge(float* into, const float* next, uint32_t head_dim) {
  const uint32_t floats = partial_floats(head_dim);
  if (next[1] == 0.0F) return;
  if (into[1] == 0.0F) {
    for (uint32_t i = 0; i < floats; ++i) into[i] = next[i];
    return;
  }
  const float greatest = next[0] > into[0] ? next[0] : into[0];
  const V a = attention_exp16(V::all(into[0] - greatest));
  const V b = attention_exp16(V::all(next[0] - greatest));
  const float sum = V::fma(V::all(next[1]), b, V::all(into[1]) * a).max_lane();
  for (uint32_t i = 16; i < floats; i += 16)
    V::fma(V::load(next + i), b, V::load(into + i) * a).store(into + i);
  into[0] = greatest;
  into[1] = sum;
}

template <class V>
void attention_finish(const float* partial, uint32_t head_dim, float* out) {
  const V inverse = V::all(1.0F / partial[1]);
  for (uint32_t d = 0; d < head_dim; d += 16) {
    const uint32_t dims = head_dim - d < 16 ? head_dim - d : 16;
    (V::load(partial + 16 + d) * inverse).store_first(out + d, dims);
  }
}

}  // namespace troupe::ops_vector
