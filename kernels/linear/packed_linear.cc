#include <string>

#include "base/assert.h"
#include "kernels/linear/linear.h"
#include "kernels/linear/row_packing.h"
#include "kernels/reference/linear_reference.h"

namespace troupe {
namespace {

uint32_t chunks_of(uint32_t n_in) {
  return (n_in + kLinearChunk - 1) / kLinearChunk;
}
uint32_t groups_of(uint32_t n_out) {
  return (n_out + kLinearLanes - 1) / kLinearLanes;
}

std::string shape(WeightType type, uint32_t n_out, uint32_t n_in) {
  return "A " + std::string(traits_of(type).name) + " weight matrix of " + std::to_string(n_out) +
         " rows of " + std::to_string(n_in);
}

}  // namespace

PackedLinear::PackedLinear(WeightType type, LinearFormat format, uint32_t n_out, uint32_t n_in)
    : type_(type),
      format_(format),
      n_out_(n_out),
      n_in_(n_in),
      data_(groups_of(n_out) * linear_chunk_at(format, chunks_of(n_in))),
      scales_(size_t{groups_of(n_out)} * kLinearLanes * sizeof(float)) {}

Result<std::unique_ptr<PackedLinear>> PackedLinear::create(WeightType type, uint32_t n_out,
                                                           uint32_t n_in) {
  if (n_out == 0 || n_in == 0 || n_out > kLinearOutputsMax || n_in > kLinearInputsMax)
    return invalid_argument(shape(type, n_out, n_in) + " weights: 1 to " +
                            std::to_string(kLinearOutputsMax) + " rows of 1 to " +
                            std::to_string(kLinearInputsMax) + " weights are supported.");
  if (n_in % traits_of(type).block_weights != 0)
    return invalid_argument(shape(type, n_out, n_in) + " weights: a row must be a multiple of " +
                            std::to_string(traits_of(type).block_weights) + " weights long.");
  std::unique_ptr<PackedLinear> packed(new PackedLinear(type, linear_format(type), n_out, n_in));
  if (packed->data_.empty() || packed->scales_.empty())
    return Status{StatusCode::kResourceExhausted,
                  shape(type, n_out, n_in) +
                      " weights does not fit into memory; free some, or "
                      "take a smaller model."};
  return packed;
}

Result<std::unique_ptr<PackedLinear>> PackedLinear::pack(WeightType type, const void* matrix,
                                                         uint32_t n_out, uint32_t n_in) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<PackedLinear> packed, create(type, n_out, n_in));
  TROUPE_RETURN_IF_ERROR(packed->pack_rows(matrix, 0, n_out));
  return packed;
}

Status PackedLinear::pack_rows(const void* matrix, uint32_t row_begin, uint32_t row_end) {
  TROUPE_ASSERT(row_begin % kLinearLanes == 0, row_begin);
  TROUPE_ASSERT(row_begin <= row_end && row_end <= n_out_, row_begin, row_end, n_out_);
  const WeightTypeTraits& traits = traits_of(type_);
  const size_t row_bytes = size_t{n_in_} / traits.block_weights * traits.block_bytes;
  const size_t group_bytes = linear_chunk_at(format_, chunks_of(n_in_));
  RowPacker packer(type_, n_in_);
  for (uint32_t n = row_begin; n < row_end; ++n) {
    const uint8_t* row = static_cast<const uint8_t*>(matrix) + n * row_bytes;
    const Lane lane{data_.as<uint8_t>() + n / kLinearLanes * group_bytes, n % kLinearLanes};
    TROUPE_RETURN_IF_ERROR(packer.pack(row, n, lane, scales_.as<float>() + n));
  }
  return ok_status();
}

LinearWeights PackedLinear::view() const {
  const uint32_t chunks = chunks_of(n_in_);
  return {.format = format_,
          .data = data_.as<const uint8_t>(),
          .group_bytes = linear_chunk_at(format_, chunks),
          .scales = scales_.as<const float>(),
          .n_out = n_out_,
          .chunks = chunks};
}

int32_t PackedLinear::weight(uint32_t row, uint32_t input) const {
  TROUPE_ASSERT(row < n_out_ && input < n_in_, row, n_out_, input, n_in_);
  return linear_weight(view(), row, input);
}

float PackedLinear::row_scale(uint32_t row) const {
  TROUPE_ASSERT(row < n_out_, row, n_out_);
  return scales_.as<const float>()[row];
}

}  // namespace troupe
