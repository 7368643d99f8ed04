// Linear layers of CpuBackend, with what stands before and after them in a decoder: norm and
// quantisation of their input, the residual sum and the gate of their output. Threads share out the
// outputs, and meet once a layer when the rows are few: each then prepares the input for itself.

#include <algorithm>
#include <array>

#include "base/assert.h"
#include "engine/backend/cpu/cpu_backend.h"

namespace troupe {
namespace {

uint32_t groups_of(const PackedLinear& weights) {
  return (weights.n_out() + kLinearGroup - 1) / kLinearGroup;
}

}  // namespace

const PackedLinear& CpuBackend::packed(LinearHandle handle, uint32_t inputs,
                                       uint32_t outputs) const {
  TROUPE_ASSERT(handle.value >= 1 && handle.value <= linears_.size(), handle);
  const PackedLinear& weights = *linears_[handle.value - 1];
  TROUPE_ASSERT(weights.n_in() == inputs && weights.n_out() == outputs, weights.n_in(), inputs,
                weights.n_out(), outputs);
  return weights;
}

Status CpuBackend::prepare(uint32_t rows_max) {
  TROUPE_ASSERT(rows_max > 0 && inputs_max_ > 0, rows_max, inputs_max_);
  quantized_ = std::make_unique<QuantizedActivations>(rows_max, inputs_max_, isa_);
  columns_floats_ = std::max(size_t{rows_max} * kColumnsMin, kColumnsFloats);
  for (Workspace& own : workspaces_) {
    own.few =
        std::make_unique<QuantizedActivations>(std::min(rows_max, kFewRows), inputs_max_, isa_);
    own.normed = AlignedBuffer(inputs_max_ * sizeof(float));
    own.columns = AlignedBuffer(columns_floats_ * sizeof(float));
    if (own.normed.empty() || own.columns.empty())
      return {StatusCode::kResourceExhausted,
              "no memory for the threads' " + std::to_string(columns_floats_ * sizeof(float)) +
                  " bytes of columns: lower the number of tokens per step"};
  }
  return ok_status();
}

void CpuBackend::prepare_rows(const LinearInput& in, uint32_t begin, uint32_t end, Workspace& own,
                              QuantizedActivations& to) const {
  const float* from = buffers_.floats(in.rows);
  const size_t width = in.rows.width;
  if (in.norm.value == 0) {
    to.quantize_rows(from, width, begin, end);
    return;
  }
  const std::span<const float> weights = tensors_.vector(in.norm);
  TROUPE_ASSERT(weights.size() == width, weights.size(), width);
  auto* normed = own.normed.as<float>();
  for (uint32_t r = begin; r < end; ++r) {
    ops_.rms_norm(from + r * width, weights.data(), in.epsilon, in.rows.width, normed);
    to.quantize_rows(normed, 0, r, r + 1);
  }
}

ActivationForms CpuBackend::forms(std::span<const PackedLinear* const> layers,
                                  uint32_t rows) const {
  const bool words = std::all_of(layers.begin(), layers.end(), [&](const PackedLinear* layer) {
    return forms_for(*layer, rows, isa_) == ActivationForms::kWords;
  });
  return words ? ActivationForms::kWords : ActivationForms::kAll;
}

template <class Use>
void CpuBackend::over_outputs(std::span<const PackedLinear* const> layers, const LinearInput& in,
                              uint32_t units, const Use& use) {
  TROUPE_ASSERT(quantized_ != nullptr, "prepare() first");
  const uint32_t rows = in.rows.rows;
  if (rows <= kFewRows) {
    pool_.run([&](uint32_t thread) {
      const auto [begin, end] = pool_.part_of(units, thread);
      if (begin == end) return;
      Workspace& own = workspaces_[thread];
      own.few->reset(rows, in.rows.width);
      prepare_rows(in, 0, rows, own, *own.few);
      use(*own.few, begin, end, own);
    });
    return;
  }
  quantized_->reset(rows, in.rows.width, forms(layers, rows));
  pool_.run([&](uint32_t thread) {
    const auto [begin, end] = pool_.part_of(rows, thread);
    prepare_rows(in, begin, end, workspaces_[thread], *quantized_);
  });
  pool_.run([&](uint32_t thread) {
    const auto [begin, end] = pool_.part_of(units, thread);
    if (begin != end) use(*quantized_, begin, end, workspaces_[thread]);
  });
}

void CpuBackend::linear(std::span<const LinearHandle> weights, const LinearInput& in,
                        std::span<const Rows> out) {
  constexpr size_t kWeightsMax = 8;
  TROUPE_ASSERT(weights.size() == out.size() && weights.size() <= kWeightsMax, weights.size(),
                out.size());
  const PackedLinear* layers[kWeightsMax] = {};
  float* to[kWeightsMax] = {};
  uint32_t groups = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    TROUPE_ASSERT(out[i].rows == in.rows.rows, out[i].rows, in.rows.rows);
    layers[i] = &packed(weights[i], in.rows.width, out[i].width);
    to[i] = buffers_.floats(out[i]);
    groups += groups_of(*layers[i]);
  }
  // The groups of all layers in a row, so that threads meet once for all of them.
  over_outputs(std::span(layers).first(weights.size()), in, groups,
               [&](const QuantizedActivations& x, uint32_t begin, uint32_t end, Workspace&) {
                 uint32_t first = 0;
                 for (size_t i = 0; i < weights.size(); ++i) {
                   const uint32_t count = groups_of(*layers[i]);
                   const uint32_t from_group = std::max(begin, first) - first;
                   const uint32_t to_group = std::min(end, first + count);
                   if (first + from_group < to_group)
                     troupe::linear(*layers[i], x, from_group * kLinearGroup,
                                    std::min((to_group - first) * kLinearGroup, layers[i]->n_out()),
                                    to[i] + from_group * kLinearGroup, out[i].width);
                   first += count;
                 }
               });
}

// Calls use(first, last) on parts of the outputs of groups [begin, end) that are narrow enough for
// all rows of them to fit a thread's columns.
template <class Use>
void CpuBackend::over_columns(const PackedLinear& layer, uint32_t rows, uint32_t begin,
                              uint32_t end, const Use& use) const {
  const auto width = static_cast<uint32_t>(columns_floats_ / rows / kColumnsMin) * kColumnsMin;
  const uint32_t last = std::min(end * kLinearGroup, layer.n_out());
  for (uint32_t n = begin * kLinearGroup; n < last; n += width) use(n, std::min(n + width, last));
}

void CpuBackend::linear_add(LinearHandle weights, const LinearInput& in, Rows x) {
  const PackedLinear& layer = packed(weights, in.rows.width, x.width);
  const uint32_t rows = in.rows.rows;
  TROUPE_ASSERT(x.rows == rows, x.rows, rows);
  float* to = buffers_.floats(x);
  over_outputs(std::array{&layer}, in, groups_of(layer),
               [&](const QuantizedActivations& a, uint32_t begin, uint32_t end, Workspace& own) {
                 auto* columns = own.columns.as<float>();
                 over_columns(layer, rows, begin, end, [&](uint32_t first, uint32_t last) {
                   const uint32_t width = last - first;
                   troupe::linear(layer, a, first, last, columns, width);
                   for (size_t r = 0; r < rows; ++r)
                     ops_.add(to + r * x.width + first, columns + r * width, width);
                 });
               });
}

void CpuBackend::gated_linear(LinearHandle gate, LinearHandle up, const LinearInput& in,
                              Activation activation, Rows out) {
  const PackedLinear& gates = packed(gate, in.rows.width, out.width);
  const PackedLinear& ups = packed(up, in.rows.width, out.width);
  const uint32_t rows = in.rows.rows;
  TROUPE_ASSERT(out.rows == rows, out.rows, rows);
  const auto activate = activation == Activation::kSilu ? ops_.swiglu : ops_.geglu;
  float* to = buffers_.floats(out);
  over_outputs(std::array{&gates, &ups}, in, groups_of(gates),
               [&](const QuantizedActivations& a, uint32_t begin, uint32_t end, Workspace& own) {
                 auto* columns = own.columns.as<float>();
                 over_columns(gates, rows, begin, end, [&](uint32_t first, uint32_t last) {
                   const uint32_t width = last - first;
                   troupe::linear(gates, a, first, last, to + first, out.width);
                   troupe::linear(ups, a, first, last, columns, width);
                   for (size_t r = 0; r < rows; ++r) {
                     float* gated = to + r * out.width + first;
                     activate(gated, columns + r * width, width, gated);
                   }
                 });
               });
}

}  // namespace troupe
