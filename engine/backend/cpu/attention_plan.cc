#include "engine/backend/cpu/attention_plan.h"

#include <algorithm>

namespace troupe {

void AttentionPlan::build(const HostBatch& batch, const Shape& shape) {
  pieces_.clear();
  units_.clear();
  stride_ = partial_floats(shape.head_dim);
  const uint32_t heads_max = std::min(shape.group, kPieceQueries);
  const uint32_t rows_max = std::max(1U, kPieceQueries / heads_max);
  size_t partials = 0;
  uint32_t units = 0;
  uint32_t segments_max = 0;
  for (uint32_t s = 0; s < batch.slices().size(); ++s) {
    const HostBatch::Slice& slice = batch.slices()[s];
    for (uint32_t row = 0; row < slice.rows; row += rows_max) {
      const uint32_t rows = std::min(rows_max, slice.rows - row);
      const uint32_t end = slice.position + row + rows;
      const uint32_t first_end = slice.position + row + 1;
      const uint32_t begin =
          shape.window != 0 && first_end > shape.window ? first_end - shape.window : 0;
      const uint32_t first_segment = begin / kSegmentTokens;
      const uint32_t end_segment = (end + kSegmentTokens - 1) / kSegmentTokens;
      const uint32_t segments = end_segment - first_segment;
      segments_max = std::max(segments_max, segments);
      for (uint32_t kv_head = 0; kv_head < shape.kv_heads; ++kv_head)
        for (uint32_t head = 0; head < shape.group; head += heads_max) {
          const uint32_t heads = std::min(heads_max, shape.group - head);
          pieces_.push_back({s, slice.first_row + row, rows, kv_head, head, heads, first_segment,
                             end_segment, partials});
          partials += size_t{segments} * rows * heads * stride_;
          units += segments;
        }
    }
  }
  // The longest first, so that the last ones to be taken are short.
  std::stable_sort(pieces_.begin(), pieces_.end(), [](const Piece& a, const Piece& b) {
    return uint64_t{a.segments()} * a.rows * a.heads > uint64_t{b.segments()} * b.rows * b.heads;
  });
  const bool split = shape.threads > 1 && segments_max > 1 && partials <= kPartialsMax &&
                     pieces_.size() < size_t{4} * shape.threads;
  if (!split) return;
  units_.reserve(units);
  for (uint32_t p = 0; p < pieces_.size(); ++p)
    for (uint32_t s = pieces_[p].first_segment; s < pieces_[p].end_segment; ++s)
      units_.push_back({p, s});
  if (partials_.size() < partials) partials_.resize(partials);
}

}  // namespace troupe
