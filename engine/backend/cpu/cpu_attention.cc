// Attention of CpuBackend: shares the pieces of the plan out among the threads.

#include <cmath>

#include "base/assert.h"
#include "engine/backend/cpu/cpu_backend.h"

namespace troupe {

void CpuBackend::attention(Rows q, KvHandle kv, uint32_t layer, Rows out) {
  const KvPool& pool = kv_pools_.get(kv);
  const uint32_t head_dim = pool.shape.head_dim;
  TROUPE_ASSERT(layer < pool.shape.layers, layer, pool.shape.layers);
  TROUPE_ASSERT(q.rows == batch_.rows() && out.rows == q.rows && out.width == q.width, q.rows,
                out.rows, q.width, out.width);
  TROUPE_ASSERT(q.width % (pool.shape.kv_heads * head_dim) == 0, q.width, pool.shape.kv_heads);
  const AttentionCall call{.query = buffers_.floats(q),
                           .out = buffers_.floats(out),
                           .pool = &pool,
                           .layer = layer,
                           .width = q.width,
                           .group = q.width / head_dim / pool.shape.kv_heads,
                           .scale = 1.0F / std::sqrt(static_cast<float>(head_dim))};
  if (!plan_is_current_)
    plan_.build(batch_, pool.shape.kv_heads, call.group, head_dim, pool_.threads());
  plan_is_current_ = true;
  const auto pieces = plan_.pieces();
  const auto units = plan_.units();
  if (units.empty()) {
    pool_.each(static_cast<uint32_t>(pieces.size()), [&](uint32_t i, uint32_t thread) {
      attend(call, pieces[i], scratch_[thread].as<float>());
    });
    return;
  }
  pool_.each(static_cast<uint32_t>(units.size()), [&](uint32_t i, uint32_t thread) {
    const AttentionPlan::Piece& piece = pieces[units[i].piece];
    segment(call, piece, units[i].segment, plan_.partials(piece, units[i].segment),
            scratch_[thread].as<float>());
  });
  pool_.each(static_cast<uint32_t>(pieces.size()),
             [&](uint32_t i, uint32_t) { merge_and_finish(call, pieces[i]); });
}

void CpuBackend::segment(const AttentionCall& call, const AttentionPlan::Piece& piece,
                         uint32_t index, float* partials, float* scratch) const {
  const KvPool& pool = *call.pool;
  const HostBatch::Slice& slice = batch_.slices()[piece.slice];
  const size_t head = size_t{piece.kv_head} * call.group + piece.head;
  const AttentionTile tile{
      .query = call.query + size_t{piece.row} * call.width + head * pool.shape.head_dim,
      .query_stride = call.width,
      .rows = piece.rows,
      .group = piece.heads,
      .head_dim = pool.shape.head_dim,
      .position = batch_.position(piece.row),
      .segment = index,
      .scale = call.scale,
      .blocks = batch_.blocks(slice),
      .keys = pool.keys<uint16_t>(call.layer, piece.kv_head),
      .values = pool.values<uint16_t>(call.layer, piece.kv_head),
      .block_stride = pool.layout.block_bytes / sizeof(uint16_t)};
  ops_.attention_segment(tile, partials, scratch);
}

void CpuBackend::attend(const AttentionCall& call, const AttentionPlan::Piece& piece,
                        float* scratch) {
  const uint32_t head_dim = call.pool->shape.head_dim;
  const uint32_t queries = piece.rows * piece.heads;
  const size_t stride = partial_floats(head_dim);
  float* state = scratch + attention_scratch_floats(kAttentionQueriesMax, head_dim);
  float* next = state + size_t{kAttentionQueriesMax} * stride;
  segment(call, piece, 0, state, scratch);
  for (uint32_t s = 1; s < piece.segments; ++s) {
    segment(call, piece, s, next, scratch);
    for (uint32_t q = 0; q < queries; ++q)
      ops_.attention_merge(state + q * stride, next + q * stride, head_dim);
  }
  finish(call, piece, state);
}

void CpuBackend::merge_and_finish(const AttentionCall& call, const AttentionPlan::Piece& piece) {
  const uint32_t head_dim = call.pool->shape.head_dim;
  const size_t stride = partial_floats(head_dim);
  float* state = plan_.partials(piece, 0);
  for (uint32_t s = 1; s < piece.segments; ++s) {
    const float* next = plan_.partials(piece, s);
    for (uint32_t q = 0; q < piece.rows * piece.heads; ++q)
      ops_.attention_merge(state + q * stride, next + q * stride, head_dim);
  }
  finish(call, piece, state);
}

void CpuBackend::finish(const AttentionCall& call, const AttentionPlan::Piece& piece,
                        const float* partials) const {
  const uint32_t head_dim = call.pool->shape.head_dim;
  const size_t head = size_t{piece.kv_head} * call.group + piece.head;
  for (uint32_t q = 0; q < piece.rows * piece.heads; ++q)
    ops_.attention_finish(partials + q * partial_floats(head_dim), head_dim,
                          call.out + size_t{piece.row + q / piece.heads} * call.width +
                              (head + q % piece.heads) * head_dim);
}

}  // namespace troupe
