#pragma once
// How the attention of one batch is cut into pieces for the threads. The cut has no influence on
// the result: segments are absolute and merged in order, whoever computed them.

#include <cstdint>
#include <span>
#include <vector>

#include "engine/backend/cpu/host_store.h"
#include "kernels/ops/ops.h"

namespace troupe {

class AttentionPlan final {
 public:
  // Consecutive rows of a slice and some of the query heads of one kv head.
  struct Piece {
    uint32_t slice, row, rows;  // row: of the batch
    uint32_t kv_head, head, heads;
    uint32_t first_segment;  // that its first row sees
    uint32_t end_segment;    // one after the last that its last row sees
    size_t partials = 0;     // when split: where its partials begin, [segment][query]
    [[nodiscard]] uint32_t segments() const { return end_segment - first_segment; }
  };
  // When split: one segment of a piece.
  struct Unit {
    uint32_t piece, segment;
  };

  // Query rows x heads of a piece: enough to use each converted key and value many times.
  static constexpr uint32_t kPieceQueries = 48;
  static_assert(kPieceQueries <= kAttentionQueriesMax);
  // Floats of partials above which a plan is not split.
  static constexpr size_t kPartialsMax = size_t{4} << 20;

  struct Shape {
    uint32_t kv_heads = 0;
    uint32_t group = 0;  // query heads of a kv head
    uint32_t head_dim = 0;
    uint32_t window = 0;  // tokens that a row sees, 0: all
    uint32_t threads = 1;
  };
  void build(const HostBatch& batch, const Shape& shape);

  [[nodiscard]] std::span<const Piece> pieces() const { return pieces_; }
  // Not empty: few sequences and many segments, so the segments of a piece are shared out too.
  [[nodiscard]] std::span<const Unit> units() const { return units_; }
  [[nodiscard]] float* partials(const Piece& piece, uint32_t segment) {
    return partials_.data() + piece.partials +
           size_t{segment - piece.first_segment} * piece.rows * piece.heads * stride_;
  }

 private:
  std::vector<Piece> pieces_;
  std::vector<Unit> units_;
  std::vector<float> partials_;
  size_t stride_ = 0;
};

}  // namespace troupe
