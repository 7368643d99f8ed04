#pragma once
// Attention over KV in 8 bits: exact sums of products of integers, two of them in each lane at
// once. `V` is a vector of sixteen floats, see ops_vector.h; besides,
//   V::Pairs  sixteen pairs of words: load_pairs() widens stored ones, all_pairs() repeats one
//   V::Sums   sixteen sums of 32 bits: add_products() adds the products of two vectors of pairs,
//             of both words of a pair; floats() rounds them to nearest.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/ops_vector_attention.h"
#include "kernels/cpu/ops_vector_kv.h"

namespace troupe::ops_vector {

// What attention_int8() keeps of a tile's queries: words in place of the floats of a TileView, and
// what a unit of them stands for.
struct Int8View {
  const TileView& view;
  float query_steps[kAttentionQueriesMax];
  float weight_steps[kAttentionQueriesMax];

  // Of a query: [padded] words in its row of `scaled`, [tokens] words in its row of `scores`.
  [[nodiscard]] const std::byte* query(uint32_t q) const {
    return reinterpret_cast<const std::byte*>(view.scaled + size_t{q} * view.padded);
  }
  [[nodiscard]] const std::byte* weights(uint32_t q) const {
    return reinterpret_cast<const std::byte*>(view.scores + size_t{q} * kSegmentTokens);
  }
  [[nodiscard]] size_t query_bytes() const { return size_t{view.padded} * sizeof(float); }
  static constexpr size_t kWeightBytes = size_t{kSegmentTokens} * sizeof(float);

  // Behind the elements of a run, keys or values.
  [[nodiscard]] const float* scales(const int8_t* run) const {
    return reinterpret_cast<const float*>(run + size_t{kKvBlockTokens} * view.padded);
  }
};

// A pair of words of each of `Q` rows, which stand `stride` bytes apart; one pointer for three of
// them, as in DimOfQueries.
template <int Q>
struct PairOfRows {
  static constexpr int kPointers = (Q + 2) / 3;
  const std::byte* at[kPointers];
  size_t stride;

  PairOfRows(const std::byte* first, size_t bytes) : stride(bytes) {
#pragma GCC unroll 4
    for (int i = 0; i < kPointers; ++i) {
      at[i] = first + static_cast<size_t>(3 * i) * bytes;
      asm("" : "+r"(at[i]));
    }
  }
  int32_t operator[](int row) const {
    int32_t pair;
    __builtin_memcpy(&pair, at[row / 3] + static_cast<size_t>(row % 3) * stride, sizeof pair);
    return pair;
  }
  void next() {
#pragma GCC unroll 4
    for (int i = 0; i < kPointers; ++i) {
      at[i] += sizeof(int32_t);
      asm("" : "+r"(at[i]));
    }
  }
};

// Adds the products of a pair of words of each row and `N` vectors of stored pairs.
template <class V, int Q, int N>
inline void add_pairs(const PairOfRows<Q>& rows, const typename V::Pairs (&stored)[N],
                      typename V::Sums (&sums)[Q][N]) {
#pragma GCC unroll 8
  for (int q = 0; q < Q; ++q) {
    const auto one = V::all_pairs(rows[q]);
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) sums[q][n].add_products(one, stored[n]);
  }
}

constexpr size_t kPairBytes = size_t{2} * 16;  // of stored pairs that make a vector

// Scores of `Q` queries with the tokens of `B` consecutive blocks.
template <class V, int Q, int B>
inline void score_blocks_int8(const Int8View& own, uint32_t query, uint32_t block) {
  const TileView& view = own.view;
  const int8_t* keys[B];
  const int8_t* next[B];
  for (int b = 0; b < B; ++b) {
    keys[b] = view.keys<int8_t>(block + b);
    next[b] = block + B + b < view.count ? view.keys<int8_t>(block + B + b)
                                         : view.values<int8_t>((block + B + b) % view.count);
  }
  PairOfRows<Q> x(own.query(query), own.query_bytes());
  float* scores = view.scores + size_t{query} * kSegmentTokens + size_t{block} * kKvBlockTokens;
  size_t at = 0;  // bytes from the beginning of a run
  for (uint32_t begin = 0; begin < view.padded; begin += kInt8KeyGroup) {
    typename V::Sums sums[Q][B];
    const size_t end = size_t{smaller(view.padded, begin + kInt8KeyGroup)} * kKvBlockTokens;
    for (; at < end; at += kPairBytes, x.next()) {
      typename V::Pairs k[B];
#pragma GCC unroll 4
      for (int b = 0; b < B; ++b) k[b] = V::load_pairs(keys[b] + at);
      if (at % 64 == 0) {
#pragma GCC unroll 4
        for (int b = 0; b < B; ++b) fetch(next[b] + at);
      }
      add_pairs<V, Q, B>(x, k, sums);
    }
    const size_t group = size_t{begin / kInt8KeyGroup} * kKvBlockTokens;
#pragma GCC unroll 4
    for (int b = 0; b < B; ++b) {
      const V scale = V::load(own.scales(keys[b]) + group);
      fetch(own.scales(next[b]) + group);
#pragma GCC unroll 8
      for (int q = 0; q < Q; ++q) {
        float* to = scores + q * kSegmentTokens + b * kKvBlockTokens;
        V::fma(scale, sums[q][b].floats(), begin == 0 ? V::all(0.0F) : V::load(to)).store(to);
      }
    }
  }
#pragma GCC unroll 8
  for (int q = 0; q < Q; ++q) {
    const V step = V::all(own.query_steps[query + q]);
    float* to = scores + q * kSegmentTokens;
#pragma GCC unroll 4
    for (int b = 0; b < B; ++b, to += kKvBlockTokens) (V::load(to) * step).store(to);
  }
}

// The weighted sum of values of `Q` queries, over `C` vectors of dims starting at `dim`.
template <class V, int Q, int C>
inline void weigh_columns_int8(const Int8View& own, uint32_t query, uint32_t dim, float* partials,
                               size_t partial_stride) {
  const TileView& view = own.view;
  typename V::Sums sums[Q][C];
  PairOfRows<Q> weights(own.weights(query), Int8View::kWeightBytes);
  const size_t row = size_t{2} * view.padded;  // bytes of two tokens
  constexpr uint32_t kAhead = 2;               // blocks
  for (uint32_t block = 0; block < view.count; ++block) {
    const int8_t* values = view.values<int8_t>(block) + size_t{2} * dim;
    const int8_t* next =
        view.values<int8_t>(block + kAhead < view.count ? block + kAhead : block) + size_t{2} * dim;
    const size_t count = smaller(view.tokens - block * kKvBlockTokens, kKvBlockTokens);
    for (size_t t = 0; t < count; t += 2, values += row, next += row, weights.next()) {
      typename V::Pairs v[C];
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) v[c] = V::load_pairs(values + c * kPairBytes);
#pragma GCC unroll 2
      for (int c = 0; c < C; c += 2) fetch(next + c * kPairBytes);
      add_pairs<V, Q, C>(weights, v, sums);
    }
  }
  float* out = partials + query * partial_stride + 16 + dim;
#pragma GCC unroll 8
  for (int q = 0; q < Q; ++q) {
    const V step = V::all(own.weight_steps[query + q]);
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c)
      (sums[q][c].floats() * step).store(out + q * partial_stride + c * 16);
  }
}

template <class V>
struct ScoreInt8Step {
  const Int8View& own;
  template <int Q>
  void run(uint32_t query) const {
    constexpr int kBlocks = Q <= V::kRows / 2 ? 2 * V::kColumns : V::kColumns;
    uint32_t block = 0;
    for (; block + kBlocks <= own.view.count; block += kBlocks)
      score_blocks_int8<V, Q, kBlocks>(own, query, block);
    for (; block < own.view.count; ++block) score_blocks_int8<V, Q, 1>(own, query, block);
  }
};

template <class V>
struct WeighInt8Step {
  const Int8View& own;
  float* partials;
  size_t partial_stride;
  template <int Q>
  void run(uint32_t query) const {
    constexpr uint32_t kDims = 16 * (Q <= V::kRows / 2 ? 2 * V::kColumns : V::kColumns);
    uint32_t dim = 0;
    for (; dim + kDims <= own.view.padded; dim += kDims)
      weigh_columns_int8<V, Q, kDims / 16>(own, query, dim, partials, partial_stride);
    for (; dim < own.view.padded; dim += 16)
      weigh_columns_int8<V, Q, 1>(own, query, dim, partials, partial_stride);
  }
};

// `count` floats become words in place, zeros up to a multiple of sixteen; what one stands for.
template <class V>
inline float to_words(float* x, uint32_t count) {
  const Steps<V> steps(x, count, kInt16Levels);
  auto* out = reinterpret_cast<std::byte*>(x);
  for (uint32_t i = 0; i < count; i += 16)
    steps.integers(x + i, smaller(count - i, 16)).store_as_words(out + size_t{2} * i);
  return steps.step;
}

// From weights of values to those of their integers, as words. They are neither negative nor large
// enough to saturate.
template <class V>
inline float weigh_scales(const Int8View& own, uint32_t query) {
  const TileView& view = own.view;
  float* weights = view.scores + size_t{query} * kSegmentTokens;
  V peaks = V::all(0.0F);
  V sum = V::all(0.0F);
  for (uint32_t block = 0; block < view.count; ++block) {
    const float* scales = own.scales(view.values<int8_t>(block));
    float* to = weights + size_t{block} * kKvBlockTokens;
    const uint32_t count = view.tokens - block * kKvBlockTokens;
    // What stands behind the last token is not of this sequence.
    const V weight = count < kKvBlockTokens
                         ? V::load_first(to, count) * V::load_first(scales, count)
                         : V::load(to) * V::load(scales);
    weight.store(to);
    peaks = V::max(weight, peaks);
    sum = sum + weight;
  }
  const Steps<V> steps(peaks, sum, kInt16Levels);
  const V factor = V::all(steps.factor);  // with a step that is NaN, words do not matter
  auto* words = reinterpret_cast<std::byte*>(weights);
  for (uint32_t t = 0; t < view.tokens; t += 16)
    (V::load(weights + t) * factor).store_as_words(words + size_t{2} * t);
  return steps.step;
}

template <class V>
void attention_int8(const AttentionTile& tile, float* partials, float* scratch) {
  const TileView view = view_of(tile, scratch);
  if (view.tokens == 0) return nothing_seen(tile, partials);
  const uint32_t queries = tile.rows * tile.group;
  const size_t stride = partial_floats(tile.head_dim);
  Int8View own{.view = view, .query_steps = {}, .weight_steps = {}};
  scale_queries<V>(view);
  for (uint32_t q = 0; q < queries; ++q)
    own.query_steps[q] = to_words<V>(view.scaled + size_t{q} * view.padded, view.padded);
  over_queries<V, V::kRows>(0, queries, ScoreInt8Step<V>{own});
  soften_queries<V>(view, partials, stride);
  for (uint32_t q = 0; q < queries; ++q) own.weight_steps[q] = weigh_scales<V>(own, q);
  over_queries<V, V::kRows>(0, queries, WeighInt8Step<V>{own, partials, stride});
}

}  // namespace troupe::ops_vector
