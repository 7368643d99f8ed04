#pragma once
// What attention over vectors of sixteen floats has in common, however KV is stored.
// `V` is a vector of sixteen floats, see ops_vector.h.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/ops_vector_rows.h"

namespace troupe::ops_vector {

// A tile's queries are handled in groups of up to V::kRows, so that each converted vector of keys
// or values is used by all of them.

// The tile as the inner loops see it: `scaled` and `scores` are scratch, one row per query.
struct TileView {
  const AttentionTile* tile;
  const uint32_t* blocks;  // from the first one of the segment that row 0 sees a token of
  uint32_t tokens;         // from that block's first to the last one that the last row sees
  uint32_t count;          // of the blocks that hold them
  uint32_t padded;         // head_dim, padded: the stride of `scaled`
  float* scaled;           // [query][padded]
  float* scores;           // [query][kSegmentTokens]
  uint32_t begin;          // position of tokens[0]

  // Where the runs of a block's elements begin.
  template <class T>
  const T* keys(uint32_t block) const {
    return reinterpret_cast<const T*>(tile->keys + blocks[block] * tile->block_stride);
  }
  template <class T>
  const T* values(uint32_t block) const {
    return reinterpret_cast<const T*>(tile->values + blocks[block] * tile->block_stride);
  }
};

// Blocks lie apart, where the processor cannot foresee them: those that come next are fetched while
// one is used, the first values while the last keys are.
inline void fetch(const void* from) {
  __builtin_prefetch(from);
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

// The part of the segment that any row sees; none: tokens is 0.
inline TileView view_of(const AttentionTile& tile, float* scratch) {
  uint32_t begin = tile.segment * kSegmentTokens;
  uint32_t end = tile.position + tile.rows;
  if (end > begin + kSegmentTokens) end = begin + kSegmentTokens;
  const uint32_t first = first_seen(tile, tile.position + 1) / kKvBlockTokens * kKvBlockTokens;
  if (first > begin) begin = first;
  if (end < begin) end = begin;
  const uint32_t padded = padded_head(tile.head_dim);
  return {.tile = &tile,
          .blocks = tile.blocks + begin / kKvBlockTokens,
          .tokens = end - begin,
          .count = (end - begin + kKvBlockTokens - 1) / kKvBlockTokens,
          .padded = padded,
          .scaled = scratch,
          .scores = scratch + size_t{tile.rows} * tile.group * padded,
          .begin = begin};
}

// Queries times the scale of scores; zeros in the padding.
template <class V>
inline void scale_queries(const TileView& view) {
  const AttentionTile& tile = *view.tile;
  for (uint32_t q = 0; q < tile.rows * tile.group; ++q) {
    const float* query =
        tile.query + q / tile.group * tile.query_stride + size_t{q % tile.group} * tile.head_dim;
    for (uint32_t d = 0; d < tile.head_dim; d += 16) {
      const uint32_t dims = tile.head_dim - d < 16 ? tile.head_dim - d : 16;
      (V::load_first(query + d, dims) * V::all(tile.scale))
          .store(view.scaled + size_t{q} * view.padded + d);
    }
  }
}

template <class V>
inline void soften_queries(const TileView& view, float* partials, size_t stride) {
  const AttentionTile& tile = *view.tile;
  for (uint32_t q = 0; q < tile.rows * tile.group; ++q) {
    const uint32_t row_end = tile.position + q / tile.group + 1;
    const uint32_t row_first = first_seen(tile, row_end);
    const uint32_t seen = row_end <= view.begin ? 0 : row_end - view.begin;
    soften<V>(view.scores + size_t{q} * kSegmentTokens,
              row_first <= view.begin ? 0 : row_first - view.begin,
              seen < view.tokens ? seen : view.tokens, view.tokens, partials + q * stride);
  }
}

inline void nothing_seen(const AttentionTile& tile, float* partials) {
  for (uint32_t q = 0; q < tile.rows * tile.group; ++q)
    partials[q * size_t{partial_floats(tile.head_dim)} + 1] = 0.0F;
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
