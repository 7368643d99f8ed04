#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <iterator>
#include <limits>

#include "kernels/ops/ops.h"
#include "kernels/reference/ops_reference.h"
#include "tests/unit/kernels/ops/ops_fixture.h"

namespace troupe::test {
namespace {

// Of which attention computes; kF32 is the reference backend's own.
constexpr KvType kTypes[] = {KvType::kF16, KvType::kInt8};

// A sequence's KV of one head in shuffled blocks; memory of no token holds NaN, so that touching it
// shows.
struct Sequence {
  KvType type;
  uint32_t head_dim, tokens;
  uint32_t window = 0;
  std::vector<uint32_t> blocks;
  std::vector<std::byte> storage;
  std::vector<float> given_keys, given_values;  // [token][dim]
  std::vector<float> keys, values;              // the same as stored
  size_t block_stride;

  Sequence(KvType type_in, uint32_t head_dim_in, uint32_t tokens_in, Random& random)
      : type(type_in),
        head_dim(head_dim_in),
        tokens(tokens_in),
        block_stride(kv_block_bytes(type, 1, head_dim) + 192) {
    const uint32_t count = (tokens + 15) / 16;
    for (uint32_t b = 0; b < count; ++b) blocks.push_back((b * 7 + 3) % (count + 4));
    if ((count + 4) % 7 == 0)
      for (uint32_t b = 0; b < count; ++b) blocks[b] = count + 3 - b;
    storage.assign((count + 4) * block_stride, kNobodys);
    given_keys = random.floats(size_t{tokens} * head_dim, 2.0F);
    given_values = random.floats(size_t{tokens} * head_dim, 1.0F);
    store(given_keys, given_values);
  }

  // NaN in either type's elements or in its scales.
  static constexpr std::byte kNobodys{0xFF};

  std::byte* key_run(uint32_t token) { return storage.data() + blocks[token / 16] * block_stride; }
  std::byte* value_run(uint32_t token) { return key_run(token) + kv_key_bytes(type, head_dim); }

  void store(const std::vector<float>& new_keys, const std::vector<float>& new_values) {
    keys.clear();
    values.clear();
    for (uint32_t t = 0; t < tokens; ++t) {
      const KvOps& ops = scalar_ops().kv(type);
      ops.store_key(&new_keys[size_t{t} * head_dim], head_dim, t % 16, key_run(t));
      ops.store_value(&new_values[size_t{t} * head_dim], head_dim, t % 16, value_run(t));
      for (uint32_t d = 0; d < head_dim; ++d) {
        keys.push_back(stored_key(type, key_run(t), head_dim, t % 16, d));
        values.push_back(stored_value(type, value_run(t), head_dim, t % 16, d));
      }
    }
  }

  // Tokens before `begin` are gone: blocks that hold no other ones belong to somebody else, who has
  // written NaN into them, and so does their place in the table.
  void forget(uint32_t begin) {
    for (uint32_t b = 0; b < begin / 16; ++b) {
      std::fill_n(storage.data() + blocks[b] * block_stride, block_stride, kNobodys);
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
    tile.values = storage.data() + kv_key_bytes(type, head_dim);
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
    ops.kv(sequence.type)
        .attention_segment(sequence.tile(&query[size_t{first_row} * group * d], size_t{group} * d,
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
  // Queries and weights are words of 15 bits and a sign then.
  const double tolerance = sequence.type == KvType::kInt8 ? 5e-4 : 2e-5;
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
      BOOST_REQUIRE_SMALL(out[q * d + i] - exact, tolerance);
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
  for (const KvType type : kTypes) {
    for (const Shape& shape : kShapes) {
      Random random(shape.head_dim * 1000 + shape.position);
      const Sequence sequence(type, shape.head_dim, shape.position + shape.rows, random);
      const std::vector<float> query =
          random.floats(size_t{shape.rows} * shape.group * shape.head_dim, 3.0F);
      const std::vector<float> expected =
          attend(scalar_ops(), sequence, query, 0, shape.rows, shape.group, shape.position);
      check_formula(sequence, query, shape.group, shape.position, expected);
      for (CpuIsa isa : vector_isas())
        check_same_bits(
            attend(ops_for(isa), sequence, query, 0, shape.rows, shape.group, shape.position),
            expected,
            std::string(to_string(type)) + " attention at position " +
                std::to_string(shape.position));
    }
  }
}

struct Windowed {
  Shape shape;
  uint32_t window;
};

// Shorter and longer than a segment, beginning at edges of blocks and segments and beside them,
// with tiles whose rows' windows begin in different blocks and segments.
constexpr Windowed kWindowed[] = {
    {{64, 3, 0, 20}, 1},      {{64, 3, 30, 20}, 16},   {{256, 4, 511, 3}, 512},
    {{64, 1, 700, 40}, 512},  {{24, 2, 255, 17}, 5},   {{256, 4, 1023, 1}, 512},
    {{32, 8, 600, 5}, 300},   {{64, 2, 767, 2}, 256},  {{64, 2, 768, 1}, 256},
    {{128, 5, 1000, 9}, 257}, {{64, 3, 500, 21}, 512}, {{16, 1, 900, 64}, 100},
};

void check_window(KvType type, const Shape& shape, uint32_t window) {
  Random random(shape.head_dim * 1000 + shape.position);
  Sequence sequence(type, shape.head_dim, shape.position + shape.rows, random);
  sequence.window = window;
  if (shape.position + 1 > window) sequence.forget(shape.position + 1 - window);
  const std::vector<float> query =
      random.floats(size_t{shape.rows} * shape.group * shape.head_dim, 3.0F);
  const std::vector<float> expected =
      attend(scalar_ops(), sequence, query, 0, shape.rows, shape.group, shape.position);
  check_formula(sequence, query, shape.group, shape.position, expected);
  const std::string what = std::string(to_string(type)) + ", window " + std::to_string(window);
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

BOOST_AUTO_TEST_CASE(a_window_is_bit_equal_everywhere_right_and_reads_nothing_behind_it) {
  for (const KvType type : kTypes)
    for (const auto& [shape, window] : kWindowed) check_window(type, shape, window);
}

std::vector<CpuIsa> all_isas() {
  std::vector<CpuIsa> isas = vector_isas();
  isas.push_back(CpuIsa::kScalar);
  return isas;
}

BOOST_AUTO_TEST_CASE(a_row_has_the_same_attention_alone_as_in_any_tile) {
  constexpr uint32_t kGroup = 3, kDim = 64, kRows = 20, kPosition = 248;
  for (const KvType type : kTypes) {
    Random random(5);
    const Sequence sequence(type, kDim, kPosition + kRows, random);
    const std::vector<float> query = random.floats(size_t{kRows} * kGroup * kDim, 3.0F);
    for (CpuIsa isa : all_isas()) {
      const Ops& ops = ops_for(isa);
      const std::vector<float> whole = attend(ops, sequence, query, 0, kRows, kGroup, kPosition);
      for (uint32_t chunk : {1U, 2U, 3U, 7U, 11U}) {
        std::vector<float> pieces;
        for (uint32_t r = 0; r < kRows; r += chunk) {
          const std::vector<float> piece =
              attend(ops, sequence, query, r, std::min(chunk, kRows - r), kGroup, kPosition);
          pieces.insert(pieces.end(), piece.begin(), piece.end());
        }
        check_same_bits(pieces, whole, "attention in tiles of " + std::to_string(chunk));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(very_unequal_scores_give_the_same_bits_and_no_nan) {
  constexpr uint32_t kDim = 64, kTokens = 600;
  for (const KvType type : kTypes) {
    Random random(9);
    const Sequence sequence(type, kDim, kTokens, random);
    for (float magnitude : {0.0F, 1e-3F, 50.0F, 1e4F}) {
      const std::vector<float> query = random.floats(2 * kDim, magnitude);
      const std::vector<float> expected =
          attend(scalar_ops(), sequence, query, 0, 1, 2, kTokens - 1);
      for (float x : expected) BOOST_TEST(std::isfinite(x));
      for (CpuIsa isa : vector_isas())
        check_same_bits(attend(ops_for(isa), sequence, query, 0, 1, 2, kTokens - 1), expected,
                        "attention of queries of magnitude " + std::to_string(magnitude));
    }
  }
}

// Weights times scales may be subnormal or zero: a row must not show what tokens it does not see.
BOOST_AUTO_TEST_CASE(rows_of_tiny_zero_and_huge_numbers_are_bit_equal_alone_and_in_tiles) {
  constexpr uint32_t kGroup = 2, kDim = 48, kRows = 24, kPosition = 250;
  for (const KvType type : kTypes) {
    Random random(12);
    Sequence sequence(type, kDim, kPosition + kRows, random);
    for (uint32_t t = 0; t < sequence.tokens; ++t) {
      const float factors[] = {0.0F, 1e-30F, 1e-19F, 1e-5F, 1.0F, 3e4F, 1e30F};
      for (uint32_t d = 0; d < kDim; ++d) {
        sequence.given_keys[t * kDim + d] *= factors[t * 5 % 5];
        sequence.given_values[t * kDim + d] *= factors[t % std::size(factors)];
      }
    }
    sequence.store(sequence.given_keys, sequence.given_values);
    const std::vector<float> query = random.floats(size_t{kRows} * kGroup * kDim, 3.0F);
    const std::vector<float> expected =
        attend(scalar_ops(), sequence, query, 0, kRows, kGroup, kPosition);
    for (CpuIsa isa : vector_isas()) {
      const Ops& ops = ops_for(isa);
      check_same_bits(attend(ops, sequence, query, 0, kRows, kGroup, kPosition), expected,
                      "in one tile");
      std::vector<float> alone;
      for (uint32_t r = 0; r < kRows; ++r) {
        const auto row = attend(ops, sequence, query, r, 1, kGroup, kPosition);
        alone.insert(alone.end(), row.begin(), row.end());
      }
      check_same_bits(alone, expected, "row by row");
    }
  }
}

BOOST_AUTO_TEST_CASE(a_key_or_value_that_is_no_number_shows_in_rows_that_see_it) {
  constexpr uint32_t kDim = 40, kTokens = 300, kBad = 277;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const KvType type : kTypes) {
    for (const bool in_key : {true, false}) {
      Random random(13);
      Sequence sequence(type, kDim, kTokens, random);
      (in_key ? sequence.given_keys : sequence.given_values)[kBad * kDim + 33] = nan;
      sequence.store(sequence.given_keys, sequence.given_values);
      const std::vector<float> query = random.floats(kDim, 3.0F);
      for (CpuIsa isa : all_isas()) {
        const auto is_nan = [](float x) { return std::isnan(x); };
        const auto seeing = attend(ops_for(isa), sequence, query, 0, 1, 1, kBad);
        BOOST_TEST(std::any_of(seeing.begin(), seeing.end(), is_nan));
        const auto before = attend(ops_for(isa), sequence, query, 0, 1, 1, kBad - 1);
        BOOST_TEST(std::none_of(before.begin(), before.end(), is_nan));
      }
    }
  }
}

// Attention over 8 bits against attention over what was given. Elements are off by up to half a
// step s = peak / 127 of those that share it, evenly: a deviation of s / sqrt(12). So the score of
// token t has the deviation e(t) = scale * sqrt(sum over dims of q[d]^2 s(d)^2 / 12), and its
// weight w(t) moves by w(t) e(t), which moves the mean towards v(t) by as much of their distance.
// Values add w(t) s(t) / sqrt(12). All of these are independent, so that their squares add up.
struct Expected {
  std::vector<double> exact, deviation;  // by dim

  Expected(const Sequence& sequence, const std::vector<float>& query) {
    const uint32_t dims = sequence.head_dim, tokens = sequence.tokens;
    const double scale = 1.0 / std::sqrt(static_cast<double>(dims));
    std::vector<double> weights(tokens), variances(tokens);
    double sum = 0.0;
    for (uint32_t t = 0; t < tokens; ++t) {
      const float* key = &sequence.given_keys[size_t{t} * dims];
      double score = 0.0;
      for (uint32_t d = 0; d < dims; ++d) {
        const uint32_t begin = d / kInt8KeyGroup * kInt8KeyGroup;
        const double step = peak_of(key + begin, std::min(kInt8KeyGroup, dims - begin)) / 127.0;
        score += double{query[d]} * key[d];
        variances[t] += std::pow(query[d] * step * scale, 2) / 12.0;
      }
      sum += weights[t] = std::exp(score * scale);
    }
    for (double& weight : weights) weight /= sum;
    for (uint32_t d = 0; d < dims; ++d) {
      const auto value = [&](uint32_t t) {
        return double{sequence.given_values[size_t{t} * dims + d]};
      };
      double mean = 0.0, variance = 0.0;
      for (uint32_t t = 0; t < tokens; ++t) mean += weights[t] * value(t);
      for (uint32_t t = 0; t < tokens; ++t) {
        const double step = peak_of(&sequence.given_values[size_t{t} * dims], dims) / 127.0;
        variance += weights[t] * weights[t] *
                    (variances[t] * std::pow(value(t) - mean, 2) + step * step / 12.0);
      }
      exact.push_back(mean);
      deviation.push_back(std::sqrt(variance));
    }
  }
};

BOOST_AUTO_TEST_CASE(attention_over_8_bits_is_off_by_what_their_steps_say) {
  constexpr uint32_t kDim = 80, kTokens = 400, kRounds = 40;
  Random random(21);
  Sequence sequence(KvType::kInt8, kDim, kTokens, random);
  for (uint32_t t = 0; t < kTokens; ++t)
    sequence.given_keys[t * kDim + 3] *= 10.0F;  // a dim far greater than the others
  sequence.store(sequence.given_keys, sequence.given_values);
  double worst = 0.0, squares = 0.0;
  for (uint32_t round = 0; round < kRounds; ++round) {
    const std::vector<float> query = random.floats(kDim, 1.0F);
    const std::vector<float> out = attend(scalar_ops(), sequence, query, 0, 1, 1, kTokens - 1);
    const Expected expected(sequence, query);
    for (uint32_t d = 0; d < kDim; ++d) {
      const double error = (out[d] - expected.exact[d]) / expected.deviation[d];
      worst = std::max(worst, std::abs(error));
      squares += error * error;
    }
  }
  const double spread = std::sqrt(squares / (kRounds * kDim));
  BOOST_TEST_MESSAGE("errors of 8 bits, in expected deviations: " << spread << ", the largest "
                                                                  << worst);
  BOOST_TEST(std::abs(spread - 1.0) < 0.1);
  BOOST_TEST(worst < 5.0);
}

BOOST_AUTO_TEST_CASE(a_partial_without_tokens_changes_nothing_in_a_merge) {
  constexpr uint32_t kDim = 16;
  std::vector<float> empty(partial_floats(kDim), 0.0F), full(partial_floats(kDim), 0.5F);
  for (CpuIsa isa : all_isas()) {
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
