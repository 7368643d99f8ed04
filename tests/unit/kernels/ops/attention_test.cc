#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "kernels/ops/ops.h"
#include "kernels/reference/float16.h"
#include "kernels/reference/ops_reference.h"
#include "tests/unit/kernels/ops/ops_fixture.h"

namespace troupe::test {
namespace {

// A sequence's KV of one head in shuffled blocks; memory of no token holds NaN, so that touching it
// shows.
struct Sequence {
  uint32_t head_dim, tokens;
  uint32_t window = 0;
  std::vector<uint32_t> blocks;
  std::vector<uint16_t> storage;
  std::vector<float> keys, values;  // as stored, [token][dim]
  size_t block_stride;

  Sequence(uint32_t head_dim_in, uint32_t tokens_in, Random& random)
      : head_dim(head_dim_in), tokens(tokens_in), block_stride(3 * kv_head_elements(head_dim)) {
    const uint32_t count = (tokens + 15) / 16;
    for (uint32_t b = 0; b < count; ++b) blocks.push_back((b * 7 + 3) % (count + 4));
    if ((count + 4) % 7 == 0)
      for (uint32_t b = 0; b < count; ++b) blocks[b] = count + 3 - b;
    storage.assign((count + 4) * block_stride, 0x7E00);
    keys = random.floats(size_t{tokens} * head_dim, 2.0F);
    values = random.floats(size_t{tokens} * head_dim, 1.0F);
    for (uint32_t t = 0; t < tokens; ++t) {
      uint16_t* block = storage.data() + blocks[t / 16] * block_stride;
      scalar_ops().store_key(&keys[size_t{t} * head_dim], head_dim, t % 16, block);
      scalar_ops().store_value(&values[size_t{t} * head_dim], head_dim, t % 16,
                               block + kv_head_elements(head_dim));
    }
    for (float& k : keys) k = f16_to_f32(f32_to_f16(k));
    for (float& v : values) v = f16_to_f32(f32_to_f16(v));
  }

  // Tokens before `begin` are gone: blocks that hold no other ones belong to somebody else, who has
  // written NaN into them, and so does their place in the table.
  void forget(uint32_t begin) {
    for (uint32_t b = 0; b < begin / 16; ++b) {
      std::fill_n(storage.data() + blocks[b] * block_stride, block_stride, 0x7E00);
      blocks[b] = ~0U;
    }
  }

  [[nodiscard]] AttentionTile tile(const float* query, size_t stride, uint32_t rows, uint32_t group,
                                   uint32_t position, uint32_t segment) const {
    AttentionTile tile;
    tile.query = query;
    tile.query_stride = stride;
    tile.rows = rows;
    tile.group = group;
    tile.head_dim = head_dim;
    tile.position = position;
    tile.window = window;
    tile.segment = segment;
    tile.scale = 1.0F / std::sqrt(static_cast<float>(head_dim));
    tile.blocks = blocks.data();
    tile.keys = storage.data();
    tile.values = storage.data() + kv_head_elements(head_dim);
    tile.block_stride = block_stride;
    return tile;
  }
};

// Attention of `rows` rows as the definition says: all segments in order, merged, finished.
std::vector<float> attend(const Ops& ops, const Sequence& sequence, const std::vector<float>& query,
                          uint32_t first_row, uint32_t rows, uint32_t group, uint32_t position) {
  const uint32_t d = sequence.head_dim;
  const size_t stride = partial_floats(d);
  std::vector<float> state(rows * group * stride, 0.0F), next(state.size());
  std::vector<float> scratch(attention_scratch_floats(rows * group, d));
  std::vector<float> out(size_t{rows} * group * d);
  for (uint32_t s = 0; s * kSegmentTokens < position + first_row + rows; ++s) {
    ops.attention_segment(sequence.tile(&query[size_t{first_row} * group * d], size_t{group} * d,
                                        rows, group, position + first_row, s),
                          next.data(), scratch.data());
    for (uint32_t q = 0; q < rows * group; ++q)
      ops.attention_merge(&state[q * stride], &next[q * stride], d);
  }
  for (uint32_t q = 0; q < rows * group; ++q)
    ops.attention_finish(&state[q * stride], d, &out[size_t{q} * d]);
  return out;
}

void check_formula(const Sequence& sequence, const std::vector<float>& query, uint32_t group,
                   uint32_t position, const std::vector<float>& out) {
  const uint32_t d = sequence.head_dim;
  for (uint32_t q = 0; q < out.size() / d; ++q) {
    std::vector<double> scores(position + q / group + 1);
    const size_t first = sequence.window == 0 || scores.size() < sequence.window
                             ? 0
                             : scores.size() - sequence.window;
    double greatest = -1e300, sum = 0.0;
    for (size_t t = first; t < scores.size(); ++t) {
      for (uint32_t i = 0; i < d; ++i)
        scores[t] += static_cast<double>(query[q * d + i]) * sequence.keys[t * d + i];
      scores[t] /= std::sqrt(static_cast<double>(d));
      greatest = std::max(greatest, scores[t]);
    }
    for (size_t t = first; t < scores.size(); ++t)
      sum += scores[t] = std::exp(scores[t] - greatest);
    for (uint32_t i = 0; i < d; ++i) {
      double exact = 0.0;
      for (size_t t = first; t < scores.size(); ++t)
        exact += scores[t] / sum * sequence.values[t * d + i];
      BOOST_REQUIRE_SMALL(out[q * d + i] - exact, 2e-5);
    }
  }
}

struct Shape {
  uint32_t head_dim, group, position, rows;
};

// Head sizes with and without padding, groups of 1 to 8, positions around the edges of blocks and
// segments, rows that straddle them.
constexpr Shape kShapes[] = {
    {8, 1, 0, 1},     {8, 2, 0, 17},    {24, 1, 14, 3},   {32, 1, 0, 1},   {32, 8, 15, 2},
    {64, 3, 0, 1},    {64, 3, 15, 1},   {64, 3, 16, 1},   {64, 3, 254, 4}, {64, 3, 255, 1},
    {64, 3, 256, 1},  {64, 3, 511, 2},  {64, 3, 500, 21}, {64, 1, 0, 40},  {80, 4, 31, 5},
    {96, 2, 253, 19}, {128, 8, 250, 8}, {128, 5, 640, 3}, {48, 6, 100, 7}, {128, 7, 1023, 2},
    {256, 4, 0, 1},   {256, 1, 300, 9},
};

BOOST_AUTO_TEST_CASE(attention_is_bit_equal_on_every_instruction_set_and_right) {
  for (const Shape& shape : kShapes) {
    Random random(shape.head_dim * 1000 + shape.position);
    const Sequence sequence(shape.head_dim, shape.position + shape.rows, random);
    const std::vector<float> query =
        random.floats(size_t{shape.rows} * shape.group * shape.head_dim, 3.0F);
    const std::vector<float> expected =
        attend(scalar_ops(), sequence, query, 0, shape.rows, shape.group, shape.position);
    check_formula(sequence, query, shape.group, shape.position, expected);
    for (CpuIsa isa : vector_isas())
      check_same_bits(
          attend(ops_for(isa), sequence, query, 0, shape.rows, shape.group, shape.position),
          expected, "attention at position " + std::to_string(shape.position));
  }
}

// Windows shorter and longer than a segment, that begin at edges of blocks and segments and beside
// them, with tiles whose rows' windows begin in different blocks and segments.
BOOST_AUTO_TEST_CASE(a_window_is_bit_equal_everywhere_right_and_reads_nothing_behind_it) {
  struct Windowed {
    Shape shape;
    uint32_t window;
  };
  constexpr Windowed kWindowed[] = {
      {{64, 3, 0, 20}, 1},      {{64, 3, 30, 20}, 16},   {{256, 4, 511, 3}, 512},
      {{64, 1, 700, 40}, 512},  {{24, 2, 255, 17}, 5},   {{256, 4, 1023, 1}, 512},
      {{32, 8, 600, 5}, 300},   {{64, 2, 767, 2}, 256},  {{64, 2, 768, 1}, 256},
      {{128, 5, 1000, 9}, 257}, {{64, 3, 500, 21}, 512}, {{16, 1, 900, 64}, 100},
  };
  for (const auto& [shape, window] : kWindowed) {
    Random random(shape.head_dim * 1000 + shape.position);
    Sequence sequence(shape.head_dim, shape.position + shape.rows, random);
    sequence.window = window;
    if (shape.position + 1 > window) sequence.forget(shape.position + 1 - window);
    const std::vector<float> query =
        random.floats(size_t{shape.rows} * shape.group * shape.head_dim, 3.0F);
    const std::vector<float> expected =
        attend(scalar_ops(), sequence, query, 0, shape.rows, shape.group, shape.position);
    check_formula(sequence, query, shape.group, shape.position, expected);
    const std::string what = "window " + std::to_string(window);
    for (CpuIsa isa : vector_isas()) {
      const Ops& ops = ops_for(isa);
      check_same_bits(attend(ops, sequence, query, 0, shape.rows, shape.group, shape.position),
                      expected, what);
      std::vector<float> alone;
      for (uint32_t r = 0; r < shape.rows; ++r) {
        const auto row = attend(ops, sequence, query, r, 1, shape.group, shape.position);
        alone.insert(alone.end(), row.begin(), row.end());
      }
      check_same_bits(alone, expected, what + ", row by row");
    }
  }
}

BOOST_AUTO_TEST_CASE(a_row_has_the_same_attention_alone_as_in_any_tile) {
  constexpr uint32_t kGroup = 3, kDim = 64, kRows = 20, kPosition = 248;
  Random random(5);
  const Sequence sequence(kDim, kPosition + kRows, random);
  const std::vector<float> query = random.floats(size_t{kRows} * kGroup * kDim, 3.0F);
  std::vector<CpuIsa> isas = vector_isas();
  isas.push_back(CpuIsa::kScalar);
  for (CpuIsa isa : isas) {
    const std::vector<float> whole =
        attend(ops_for(isa), sequence, query, 0, kRows, kGroup, kPosition);
    for (uint32_t chunk : {1U, 2U, 3U, 7U, 11U}) {
      std::vector<float> pieces;
      for (uint32_t r = 0; r < kRows; r += chunk) {
        const std::vector<float> piece =
            attend(ops_for(isa), sequence, query, r, std::min(chunk, kRows - r), kGroup, kPosition);
        pieces.insert(pieces.end(), piece.begin(), piece.end());
      }
      check_same_bits(pieces, whole, "attention in tiles of " + std::to_string(chunk));
    }
  }
}

BOOST_AUTO_TEST_CASE(very_unequal_scores_give_the_same_bits_and_no_nan) {
  constexpr uint32_t kDim = 64, kTokens = 600;
  Random random(9);
  const Sequence sequence(kDim, kTokens, random);
  for (float magnitude : {0.0F, 1e-3F, 50.0F, 1e4F}) {
    const std::vector<float> query = random.floats(2 * kDim, magnitude);
    const std::vector<float> expected = attend(scalar_ops(), sequence, query, 0, 1, 2, kTokens - 1);
    for (float x : expected) BOOST_TEST(std::isfinite(x));
    for (CpuIsa isa : vector_isas())
      check_same_bits(attend(ops_for(isa), sequence, query, 0, 1, 2, kTokens - 1), expected,
                      "attention of queries of magnitude " + std::to_string(magnitude));
  }
}

BOOST_AUTO_TEST_CASE(a_partial_without_tokens_changes_nothing_in_a_merge) {
  constexpr uint32_t kDim = 16;
  std::vector<float> empty(partial_floats(kDim), 0.0F), full(partial_floats(kDim), 0.5F);
  std::vector<CpuIsa> isas = vector_isas();
  isas.push_back(CpuIsa::kScalar);
  for (CpuIsa isa : isas) {
    std::vector<float> into = full;
    ops_for(isa).attention_merge(into.data(), empty.data(), kDim);
    check_same_bits(into, full, "merge of nothing");
    into = empty;
    ops_for(isa).attention_merge(into.data(), full.data(), kDim);
    check_same_bits(into, full, "merge into nothing");
  }
}

}  // namespace
}  // namespace troupe::test
