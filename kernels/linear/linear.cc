#include "kernels/linear/linear.h"

#include "base/assert.h"

namespace troupe {
namespace {

// Of the calling thread; grows, never shrinks. Rows are at most kLinearInputsMax long, so it is at
// most 8 MiB.
uint8_t* scratch(uint32_t chunks) {
  thread_local AlignedBuffer buffer;
  const size_t bytes = linear_scratch_bytes(chunks);
  if (buffer.bytes() < bytes) {
    buffer = AlignedBuffer(bytes);
    TROUPE_ASSERT(!buffer.empty(), bytes);
  }
  return buffer.as<uint8_t>();
}

}  // namespace

void linear(const PackedLinear& weights, const QuantizedActivations& activations, uint32_t n_begin,
            uint32_t n_end, float* out, size_t out_stride) {
  TROUPE_ASSERT(weights.n_in() == activations.n_in(), weights.n_in(), activations.n_in());
  TROUPE_ASSERT(n_begin <= n_end && n_end <= weights.n_out(), n_begin, n_end, weights.n_out());
  TROUPE_ASSERT(n_begin % kLinearGroup == 0, n_begin);
  TROUPE_ASSERT(n_end % kLinearGroup == 0 || n_end == weights.n_out(), n_end, weights.n_out());
  TROUPE_ASSERT(activations.rows() == 1 || out_stride >= n_end - n_begin, out_stride);
  TROUPE_ASSERT(supports(activations.isa()), to_string(activations.isa()));
  TROUPE_ASSERT(
      activations.view().has_digits ||
          forms_for(weights, activations.rows(), activations.isa()) == ActivationForms::kWords,
      activations.rows(), to_string(activations.isa()));
  TROUPE_ASSERT(activations.view().tile_rows == 1 || activations.isa() == CpuIsa::kAmx,
                to_string(activations.isa()), activations.view().tile_rows);
  const LinearCall call{.weights = weights.view(),
                        .activations = activations.view(),
                        .group_begin = n_begin / kLinearGroup,
                        .group_end = (n_end + kLinearGroup - 1) / kLinearGroup,
                        .out = out,
                        .out_stride = out_stride,
                        .scratch = scratch(activations.view().chunks)};
  switch (activations.isa()) {
    case CpuIsa::kScalar:
      return linear_scalar(call);
    case CpuIsa::kAvx2:
      return linear_avx2(call);
    case CpuIsa::kAvx512:
      return linear_avx512(call);
    case CpuIsa::kAvx512Vnni:
      return linear_avx512vnni(call);
    case CpuIsa::kAmx:
      break;
  }
  // Few rows fill no tile.
  return call.activations.tile_rows == 1 ? linear_avx512vnni(call) : linear_amx(call);
}

}  // namespace troupe
