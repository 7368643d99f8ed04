#pragma once
// Quantised linear layers whose every output has one value, whatever computes it.
//
//   out[m][n] = float(double(sum_k A[m][k] * W[n][k]) * (double(scale_a[m]) * double(scale_w[n])))
//
// A are 12-bit integers with one float scale per row of activations, W are integers made once from
// the file's blocks with one float scale per output row. The sum is an exact integer below 2^50, so
// its value depends on no instruction set, tile, batch, thread count or order.
// docs/adr/0002-exact-integer-linear-layers.md has the reasons, the bounds and the bits.
//
//   auto weights = PackedLinear::pack(WeightType::kQ4_1, file_rows, n_out, n_in);
//   QuantizedActivations a(rows_max, n_in_max, detect_best_cpu_isa());
//   a.reset(rows, n_in);
//   a.quantize_rows(x, x_stride, 0, rows);            // ranges of rows may run on several threads
//   linear(*weights.value(), a, 0, n_out, out, out_stride);   // as may ranges of outputs

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/cpu/isa.h"
#include "kernels/linear/aligned_buffer.h"
#include "kernels/linear/linear_kernels.h"
#include "kernels/weight_type.h"
#include "troupe/status.h"

namespace troupe {

// Outputs are packed in groups of this many; work is split between threads at its multiples.
inline constexpr uint32_t kLinearGroup = 16;
// Longest row of weights; above it the exact sum would no longer fit its bounds.
inline constexpr uint32_t kLinearInputsMax = 1u << 17;
// Most output rows of one matrix.
inline constexpr uint32_t kLinearOutputsMax = 1u << 24;

// One weight matrix, [n_out][n_in], in the layout that all kernels read. Owns its memory.
// Immutable, and safe to read from any thread, once all its rows are packed.
class PackedLinear final {
 public:
  // Allocates (zeroed, so rows never packed act as zeros). kInvalidArgument: a size of 0, above its
  // limit, or a row that is no whole number of the type's blocks. kResourceExhausted: no memory.
  static Result<std::unique_ptr<PackedLinear>> create(WeightType type, uint32_t n_out,
                                                      uint32_t n_in);
  // create and pack_rows of everything.
  static Result<std::unique_ptr<PackedLinear>> pack(WeightType type, const void* matrix,
                                                    uint32_t n_out, uint32_t n_in);

  // Packs output rows [row_begin, row_end). `matrix` is the whole matrix as the file stores it (row
  // 0 first; any alignment). row_begin is a multiple of kLinearGroup (asserted), so ranges may run
  // on several threads at once. kDataLoss: a row holds a NaN or infinite weight.
  Status pack_rows(const void* matrix, uint32_t row_begin, uint32_t row_end);

  PackedLinear(const PackedLinear&) = delete;
  PackedLinear& operator=(const PackedLinear&) = delete;

  [[nodiscard]] WeightType type() const { return type_; }
  [[nodiscard]] uint32_t n_out() const { return n_out_; }
  [[nodiscard]] uint32_t n_in() const { return n_in_; }
  // Memory that it owns, in bytes.
  [[nodiscard]] size_t bytes() const { return data_.bytes() + scales_.bytes(); }
  // What a kernel reads for each use of all weights, in bytes.
  [[nodiscard]] size_t bytes_read() const { return bytes(); }

  // The integer W[row][input]; slow, for tests and tools.
  [[nodiscard]] int32_t weight(uint32_t row, uint32_t input) const;
  // scale_w[row]: the weight's value is weight(row, input) * row_scale(row).
  [[nodiscard]] float row_scale(uint32_t row) const;

  // For the kernels.
  [[nodiscard]] LinearWeights view() const;

 private:
  PackedLinear(WeightType type, LinearFormat format, uint32_t n_out, uint32_t n_in);

  const WeightType type_;
  const LinearFormat format_;
  const uint32_t n_out_, n_in_;
  AlignedBuffer data_;    // [group][chunk], see linear_kernels.h
  AlignedBuffer scales_;  // float[n_out rounded up to the group]
};

// What is made of rows of activations; all is always right.
enum class ActivationForms : uint8_t {
  kAll,    // words, and their digits and sums
  kWords,  // a quarter of the work
};
// What linear() reads of so many rows.
[[nodiscard]] ActivationForms forms_for(const PackedLinear& weights, uint32_t rows, CpuIsa isa);

// Rows of activations as 12-bit integers, in the forms that the kernels of one instruction set
// read. Allocates at construction only. reset() belongs to one thread; quantize_rows() may then run
// on disjoint ranges of rows in several threads; linear() afterwards in any number of threads.
class QuantizedActivations final {
 public:
  // All uses of these activations run on `isa`, which linear() asserts to be supported.
  QuantizedActivations(uint32_t rows_max, uint32_t n_in_max, CpuIsa isa);

  QuantizedActivations(const QuantizedActivations&) = delete;
  QuantizedActivations& operator=(const QuantizedActivations&) = delete;

  // Says what comes next: `rows` rows of `n_in` inputs (both >= 1 and within the maxima, asserted).
  void reset(uint32_t rows, uint32_t n_in, ActivationForms forms = ActivationForms::kAll);

  // Quantises rows [begin, end); row m starts at x + m * stride (in floats).
  //   scale = max|x| / 2047, A = round to nearest even (x * (2047 / max|x|)), in float arithmetic.
  // A row with max|x| < 2^-100 becomes zeros with scale 0. A row that holds a NaN or an infinity
  // gets scale NaN: all its outputs are NaN, and no other row is touched by it.
  void quantize_rows(const float* x, size_t stride, uint32_t begin, uint32_t end);

  [[nodiscard]] CpuIsa isa() const { return isa_; }
  [[nodiscard]] uint32_t rows() const { return view_.rows; }
  [[nodiscard]] uint32_t n_in() const { return n_in_; }
  [[nodiscard]] size_t bytes() const;

  // The integer A[row][input]; slow, for tests and tools.
  [[nodiscard]] int32_t value(uint32_t row, uint32_t input) const;
  [[nodiscard]] float row_scale(uint32_t row) const;

  // For the kernels.
  [[nodiscard]] const LinearActivations& view() const { return view_; }

 private:
  const CpuIsa isa_;
  const uint32_t rows_max_, n_in_max_;
  uint32_t n_in_ = 0;
  AlignedBuffer words_, digits_, sums_, scales_;
  LinearActivations view_{};
};

// Computes outputs [n_begin, n_end) for all rows of `activations`, which have the forms that
// forms_for() says (asserted); output (m, n) goes to
// out[m * out_stride + n - n_begin]. n_begin is a multiple of kLinearGroup, and n_end is one or is
// n_out (asserted); both matrices have the same n_in (asserted). Threads may run disjoint ranges at
// once. Writes nothing outside the range. A thread allocates scratch memory (64 bytes per input)
// the first time and whenever n_in grows; no locks, no logging.
void linear(const PackedLinear& weights, const QuantizedActivations& activations, uint32_t n_begin,
            uint32_t n_end, float* out, size_t out_stride);

}  // namespace troupe
