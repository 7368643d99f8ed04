#pragma once
// One row of a weight matrix from the file's blocks into its lane of a packed group.

#include <cstdint>
#include <vector>

#include "kernels/linear/block_codec.h"
#include "kernels/linear/linear_kernels.h"
#include "kernels/weight_type.h"
#include "troupe/status.h"

namespace troupe {

// How weights of a type are packed.
[[nodiscard]] LinearFormat linear_format(WeightType type);

// The place of one output's weights: its group's first byte, and which of its 16 outputs it is.
struct Lane {
  uint8_t* group;
  uint32_t lane;
};

// Packs rows of n_in weights, a whole number of the type's blocks. For one thread; its memory
// serves row after row.
class RowPacker final {
 public:
  RowPacker(WeightType type, uint32_t n_in);

  // `row` is row `number` of the file's matrix, at any alignment. The lane holds zeros before. Also
  // writes scale_w. kDataLoss: a weight is NaN or infinite.
  Status pack(const uint8_t* row, uint32_t number, const Lane& lane, float* row_scale);

 private:
  const WeightType type_;
  const LinearFormat format_;
  const uint32_t n_in_;
  std::vector<float> values_;       // of a row that is packed as words
  std::vector<BlockScale> scales_;  // of a row with 4 or 5 bits
};

}  // namespace troupe
