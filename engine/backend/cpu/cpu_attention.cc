// Attention of CpuBackend: shares the pieces of the plan out among the threads.

#include <algorithm>

#include "base/assert.h"
#include "engine/backend/cpu/cpu_backend.h"

namespace troupe {

void CpuBackend::attention(Rows q, KvHandle kv, const AttentionLayer& layer, Rows out) {
  const KvPool& pool = kv_pools_.get(kv);
  const uint32_t head_dim = pool.shape.head_dim;
  TROUPE_ASSERT(layer.index < pool.shape.layers, layer.index, pool.shape.layers);
  TROUPE_ASSERT(q.rows == batch_.rows() && out.rows == q.rows && out.width == q.width, q.rows,
                out.rows, q.width, out.width);
  TROUPE_ASSERT(q.width % (pool.shape.kv_heads * head_dim) == 0, q.width, pool.shape.kv_heads);
  const AttentionCall call{.query = buffers_.floats(q),
                           .out = buffers_.floats(out),
                           .pool = &pool,
                           .layer = layer,
                           .width = q.width,
                           .group = q.width / head_dim / pool.shape.kv_heads};
  AttentionPlan& plan = plan_for(call);
  const auto pieces = plan.pieces();
  const auto units = plan.units();
  if (units.empty()) {
    pool_.each(static_cast<uint32_t>(pieces.size()), [&](uint32_t i, uint32_t thread) {
      attend(call, pieces[i], workspaces_[thread].attention.as<float>());
    });
    return;
  }
  pool_.each(static_cast<uint32_t>(units.size()), [&](uint32_t i, uint32_t thread) {
    const AttentionPlan::Piece& piece = pieces[units[i].piece];
    segment(call, piece, units[i].segment, plan.partials(piece, units[i].segment),
            workspaces_[thread].attention.as<float>());
  });
  pool_.each(static_cast<uint32_t>(pieces.size()),
             [&](uint32_t i, uint32_t) { merge_and_finish(call, plan, pieces[i]); });
}

AttentionPlan& CpuBackend::plan_for(const AttentionCall& call) {
  const uint32_t window = call.layer.window;
  auto found = std::find_if(plans_.begin(), plans_.end(),
                            [&](const WindowPlan& plan) { return plan.window == window; });
  if (found == plans_.end()) found = plans_.insert(found, WindowPlan{.window = window});
  if (!found->is_current)
    found->plan.build(batch_, {.kv_heads = call.pool->shape.kv_heads,
                               .group = call.group,
                               .head_dim = call.pool->shape.head_dim,
                               .window = window,
                               .threads = pool_.threads()});
  found->is_current = true;
  return found->plan;
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
      .window = call.layer.window,
      .segment = index,
      .scale = call.layer.scale,
      .blocks = batch_.blocks(slice, pool.shape.windowed),
      .keys = pool.keys(call.layer.index, piece.kv_head),
      .values = pool.values(call.layer.index, piece.kv_head),
      .block_stride = pool.layout.block_stride};
  ops_.kv(pool.shape.type).attention_segment(tile, partials, scratch);
}

void CpuBackend::attend(const AttentionCall& call, const AttentionPlan::Piece& piece,
                        float* scratch) {
  const uint32_t head_dim = call.pool->shape.head_dim;
  const uint32_t queries = piece.rows * piece.heads;
  const size_t stride = partial_floats(head_dim);
  float* state = scratch + attention_scratch_floats(kAttentionQueriesMax, head_dim);
  float* next = state + size_t{kAttentionQueriesMax} * stride;
  segment(call, piece, piece.first_segment, state, scratch);
  for (uint32_t s = piece.first_segment + 1; s < piece.end_segment; ++s) {
    segment(call, piece, s, next, scratch);
    for (uint32_t q = 0; q < queries; ++q)
      ops_.attention_merge(state + q * stride, next + q * stride, head_dim);
  }
  finish(call, piece, state);
}

void CpuBackend::merge_and_finish(const AttentionCall& call, AttentionPlan& plan,
                                  const AttentionPlan::Piece& piece) {
  const uint32_t head_dim = call.pool->shape.head_dim;
  const size_t stride = partial_floats(head_dim);
  float* state = plan.partials(piece, piece.first_segment);
  for (uint32_t s = piece.first_segment + 1; s < piece.end_segment; ++s) {
    const float* next = plan.partials(piece, s);
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
