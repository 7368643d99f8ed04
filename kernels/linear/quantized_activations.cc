#include <algorithm>

#include "base/assert.h"
#include "kernels/linear/linear.h"
#include "kernels/reference/linear_reference.h"

namespace troupe {
namespace {

constexpr uint32_t kTileRows = 16;

size_t padded(uint32_t n_in) {
  return (size_t{n_in} + kLinearChunk - 1) / kLinearChunk * kLinearChunk;
}

// One cache line more than the inputs need: rows at a multiple of 4 KiB would share few cache sets.
size_t word_stride(uint32_t n_in) {
  return padded(n_in) + 32;
}
size_t digit_stride(uint32_t n_in) {
  return padded(n_in) + 64;
}

}  // namespace

QuantizedActivations::QuantizedActivations(uint32_t rows_max, uint32_t n_in_max, CpuIsa isa)
    : isa_(isa), rows_max_(rows_max), n_in_max_(n_in_max) {
  TROUPE_ASSERT(rows_max >= 1 && n_in_max >= 1 && n_in_max <= kLinearInputsMax, rows_max, n_in_max);
  const size_t rows = (size_t{rows_max} + kTileRows - 1) / kTileRows * kTileRows;
  words_ = AlignedBuffer(rows * word_stride(n_in_max) * sizeof(int16_t));
  digits_ = AlignedBuffer(2 * rows * digit_stride(n_in_max));
  sums_ = AlignedBuffer(rows * padded(n_in_max) / kLinearBlock * 2 * sizeof(int16_t));
  scales_ = AlignedBuffer(rows * sizeof(float));
  TROUPE_ASSERT(!words_.empty() && !digits_.empty() && !sums_.empty() && !scales_.empty(), rows_max,
                n_in_max);
}

ActivationForms forms_for(const PackedLinear& weights, uint32_t rows, CpuIsa isa) {
  if (rows <= kDigitRowsMax) return ActivationForms::kAll;
  switch (isa) {
    case CpuIsa::kScalar:
    case CpuIsa::kAvx2:
    case CpuIsa::kAvx512:
      return ActivationForms::kWords;
    case CpuIsa::kAvx512Vnni:
      return weights.view().format == LinearFormat::kByte ? ActivationForms::kAll
                                                          : ActivationForms::kWords;
    case CpuIsa::kAmx:
      break;
  }
  return ActivationForms::kAll;
}

void QuantizedActivations::reset(uint32_t rows, uint32_t n_in, ActivationForms forms) {
  TROUPE_ASSERT(rows >= 1 && rows <= rows_max_, rows, rows_max_);
  TROUPE_ASSERT(n_in >= 1 && n_in <= n_in_max_, n_in, n_in_max_);
  const bool tiles = isa_ == CpuIsa::kAmx && rows >= kAmxRowsMin;
  n_in_ = n_in;
  view_ = {.rows = rows,
           .chunks = static_cast<uint32_t>(padded(n_in) / kLinearChunk),
           .has_digits = forms == ActivationForms::kAll,
           .words = words_.as<int16_t>(),
           .word_stride = word_stride(n_in),
           .high = digits_.as<int8_t>(),
           .low = digits_.as<int8_t>() + digits_.bytes() / 2,
           .tile_rows = tiles ? kTileRows : 1,
           .tile_stride = tiles ? kTileRows * padded(n_in) : digit_stride(n_in),
           .sums = sums_.as<int16_t>(),
           .sum_stride = padded(n_in) / kLinearBlock * 2,
           .scales = scales_.as<float>()};
}

void QuantizedActivations::quantize_rows(const float* x, size_t stride, uint32_t begin,
                                         uint32_t end) {
  TROUPE_ASSERT(begin <= end && end <= view_.rows, begin, end, view_.rows);
  const auto quantize_row = isa_ == CpuIsa::kScalar ? quantize_row_scalar
                            : isa_ == CpuIsa::kAvx2 ? quantize_row_avx2
                                                    : quantize_row_avx512;
  for (uint32_t m = begin; m < end; ++m) quantize_row(x + m * stride, n_in_, view_, m);
}

size_t QuantizedActivations::bytes() const {
  return words_.bytes() + digits_.bytes() + sums_.bytes() + scales_.bytes();
}

int32_t QuantizedActivations::value(uint32_t row, uint32_t input) const {
  TROUPE_ASSERT(row < view_.rows && input < n_in_, row, view_.rows, input, n_in_);
  return linear_activation(view_, row, input);
}

float QuantizedActivations::row_scale(uint32_t row) const {
  TROUPE_ASSERT(row < view_.rows, row, view_.rows);
  return view_.scales[row];
}

}  // namespace troupe
