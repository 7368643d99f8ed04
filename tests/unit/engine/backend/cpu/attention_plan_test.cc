#include "engine/backend/cpu/attention_plan.h"

#include <boost/test/unit_test.hpp>
#include <vector>

namespace troupe::test {
namespace {

struct Case {
  uint32_t kv_heads, group, threads, window;
  std::vector<std::pair<uint32_t, uint32_t>> slices;  // position, rows
};

BOOST_AUTO_TEST_CASE(pieces_cover_every_query_head_of_every_row_once) {
  const Case cases[] = {
      {3, 3, 2, 0, {{0, 100}}},
      {1, 1, 2, 0, {{1000, 1}}},
      {2, 8, 4, 0, {{255, 2}, {0, 1}, {511, 70}}},
      {1, 130, 2, 0, {{300, 3}}},  // more heads than a piece holds
      {4, 1, 1, 0, {{4000, 1}, {5, 17}}},
      {2, 2, 2, 512, {{4000, 1}, {500, 300}}},
      {1, 4, 3, 300, {{811, 1}, {0, 3}}},
  };
  constexpr uint32_t kHeadDim = 64;
  for (const Case& c : cases) {
    std::vector<BlockIndex> blocks(600);
    std::vector<BatchSlice> slices;
    std::vector<TokenId> tokens;
    for (const auto& [position, rows] : c.slices) {
      slices.push_back({static_cast<uint32_t>(tokens.size()), rows, position, blocks});
      tokens.resize(tokens.size() + rows);
    }
    HostBatch batch;
    batch.set({.tokens = tokens, .slices = slices}, {}, HostRopes());
    AttentionPlan plan;
    plan.build(batch, {c.kv_heads, c.group, kHeadDim, c.window, c.threads});

    const uint32_t heads = c.kv_heads * c.group;
    std::vector<int> covered(tokens.size() * heads);
    for (const AttentionPlan::Piece& piece : plan.pieces()) {
      BOOST_REQUIRE_LE(piece.rows * piece.heads, AttentionPlan::kPieceQueries);
      const uint32_t last = batch.position(piece.row) + piece.rows - 1;
      BOOST_TEST(piece.end_segment == last / kSegmentTokens + 1);
      const uint32_t end = batch.position(piece.row) + 1;  // of what its first row sees
      const uint32_t first = c.window == 0 || end < c.window ? 0 : end - c.window;
      BOOST_TEST(piece.first_segment == first / kSegmentTokens);
      for (uint32_t r = 0; r < piece.rows; ++r)
        for (uint32_t h = 0; h < piece.heads; ++h)
          ++covered[(piece.row + r) * heads + piece.kv_head * c.group + piece.head + h];
    }
    for (int times : covered) BOOST_REQUIRE_EQUAL(times, 1);
    if (plan.units().empty()) continue;
    size_t segments = 0;
    for (const AttentionPlan::Piece& piece : plan.pieces()) segments += piece.segments();
    BOOST_TEST(plan.units().size() == segments);
  }
}

BOOST_AUTO_TEST_CASE(segments_are_shared_out_when_one_long_sequence_runs_alone) {
  std::vector<BlockIndex> blocks(600);
  const TokenId token = 0;
  const BatchSlice slice{0, 1, 4000, blocks};
  HostBatch batch;
  batch.set({.tokens = {&token, 1}, .slices = {&slice, 1}}, {}, HostRopes());
  AttentionPlan plan;
  plan.build(batch, {1, 3, 64, 0, 2});
  BOOST_TEST(plan.units().size() == 16U);
  plan.build(batch, {1, 3, 64, 0, 1});
  BOOST_TEST(plan.units().empty());
}

}  // namespace
}  // namespace troupe::test
