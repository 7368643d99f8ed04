#include "engine/backend/reference/reference_backend.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/assert.h"

namespace troupe {
namespace {

constexpr uint32_t kPanel = 16;

float activate(Activation activation, float gate) {
  if (activation == Activation::kSilu) return gate / (1.0F + std::exp(-gate));
  constexpr double kRoot = 0.7978845608028654;  // sqrt(2 / pi)
  const auto x = static_cast<double>(gate);
  return static_cast<float>(0.5 * x * (1.0 + std::tanh(kRoot * (x + 0.044715 * x * x * x))));
}

}  // namespace

ReferenceBackend::ReferenceBackend(uint32_t threads, CpuIsa isa)
    : ops_(ops_for(isa)),
      pool_(threads),
      description_("reference fp32, " + std::to_string(threads) + " threads") {
  TROUPE_ASSERT(supports(isa), to_string(isa));
}

Result<BufferHandle> ReferenceBackend::allocate(uint64_t bytes, MemoryKind kind) {
  return buffers_.allocate(bytes, kind);
}

void ReferenceBackend::release(BufferHandle buffer) {
  buffers_.release(buffer);
}

std::span<std::byte> ReferenceBackend::host_bytes(BufferHandle buffer) {
  return buffers_.pinned(buffer);
}

void ReferenceBackend::copy(BufferHandle to, uint64_t to_offset, BufferHandle from,
                            uint64_t from_offset, uint64_t bytes) {
  std::memcpy(buffers_.at(to, to_offset, bytes), buffers_.at(from, from_offset, bytes), bytes);
}

EventHandle ReferenceBackend::record_event() {
  return EventHandle(++events_);
}

Result<bool> ReferenceBackend::query(EventHandle event) {
  TROUPE_ASSERT(event.value >= 1 && event.value <= events_, event, events_);
  return true;
}

Status ReferenceBackend::wait(EventHandle event, Duration) {
  return query(event).status();
}

Result<LinearHandle> ReferenceBackend::upload_linear(const TensorSource& source) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<float> rows, dequantized(source));
  Linear linear{source.inputs, source.outputs, {}};
  const uint32_t panels = (source.outputs + kPanel - 1) / kPanel;
  linear.panels.resize(size_t{panels} * source.inputs * kPanel);
  for (uint32_t n = 0; n < source.outputs; ++n)
    for (uint32_t k = 0; k < source.inputs; ++k)
      linear.panels[(size_t{n / kPanel} * source.inputs + k) * kPanel + n % kPanel] =
          rows[size_t{n} * source.inputs + k];
  linear_bytes_ += linear.panels.size() * sizeof(float);
  linears_.push_back(std::move(linear));
  return LinearHandle(static_cast<uint32_t>(linears_.size()));
}

Result<EmbeddingHandle> ReferenceBackend::upload_embedding(const TensorSource& source) {
  return tensors_.add_embedding(source);
}

Result<VectorHandle> ReferenceBackend::upload_vector(const TensorSource& source) {
  return tensors_.add_vector(source);
}

Result<RopeHandle> ReferenceBackend::make_rope(const RopeParameters& parameters) {
  return ropes_.add(parameters);
}

uint64_t ReferenceBackend::weight_bytes() const {
  return linear_bytes_ + tensors_.bytes();
}

Result<KvHandle> ReferenceBackend::allocate_kv(const KvShape& shape) {
  KvShape stored = shape;
  stored.type = KvType::kF32;
  return kv_pools_.add(stored, buffers_);
}

KvLayout ReferenceBackend::kv_layout(KvHandle kv) const {
  return kv_pools_.get(kv).layout;
}

std::span<std::byte> ReferenceBackend::kv_memory(KvHandle kv) {
  const KvPool& pool = kv_pools_.get(kv);
  return {pool.base, pool.shape.blocks * pool.layout.block_stride};
}

void ReferenceBackend::copy_block(KvHandle kv, BlockIndex from, BlockIndex to) {
  kv_pools_.copy_block(kv, from, to);
}

Status ReferenceBackend::prepare(uint32_t) {
  return ok_status();
}

void ReferenceBackend::set_batch(const Batch& batch, std::span<const RopeHandle> ropes) {
  batch_.set(batch, ropes, ropes_);
}

void ReferenceBackend::embed(EmbeddingHandle table, Rows out) {
  TROUPE_ASSERT(out.rows == batch_.rows(), out.rows, batch_.rows());
  float* to = buffers_.floats(out);
  for (uint32_t r = 0; r < out.rows; ++r)
    tensors_.embed(table, batch_.token(r), {to + size_t{r} * out.width, out.width});
}

void ReferenceBackend::normalise(Rows in, VectorHandle weight, float epsilon, float* out) const {
  const std::span<const float> weights = tensors_.vector(weight);
  TROUPE_ASSERT(in.width == weights.size(), in.width, weights.size());
  for (uint32_t r = 0; r < in.rows; ++r) {
    const float* x = buffers_.floats(in) + size_t{r} * in.width;
    float* to = out + size_t{r} * in.width;
    double squares = 0.0;
    for (uint32_t i = 0; i < in.width; ++i) squares += static_cast<double>(x[i]) * x[i];
    const double root = std::sqrt(squares / in.width + static_cast<double>(epsilon));
    for (uint32_t i = 0; i < in.width; ++i) to[i] = static_cast<float>(x[i] / root) * weights[i];
  }
}

void ReferenceBackend::rms_norm(Rows in, VectorHandle weight, float epsilon, Rows out) {
  TROUPE_ASSERT(in.rows == out.rows && in.width == out.width, in.rows, out.rows, in.width,
                out.width);
  normalise(in, weight, epsilon, buffers_.floats(out));
}

void ReferenceBackend::add_normed(Rows x, Rows y, VectorHandle weight, float epsilon) {
  TROUPE_ASSERT(x.rows == y.rows && x.width == y.width, x.rows, y.rows, x.width, y.width);
  std::vector<float> normed(size_t{y.rows} * y.width);
  normalise(y, weight, epsilon, normed.data());
  float* to = buffers_.floats(x);
  for (size_t i = 0; i < normed.size(); ++i) to[i] += normed[i];
}

std::vector<float> ReferenceBackend::multiplied(LinearHandle weights, const LinearInput& in,
                                                uint32_t outputs) {
  TROUPE_ASSERT(weights.value >= 1 && weights.value <= linears_.size(), weights);
  const Linear& linear = linears_[weights.value - 1];
  const uint32_t rows = in.rows.rows;
  TROUPE_ASSERT(linear.inputs == in.rows.width && linear.outputs == outputs, linear.inputs,
                in.rows.width, linear.outputs, outputs);
  const float* x = buffers_.floats(in.rows);
  std::vector<float> normed;
  if (in.norm.value != 0) {
    normed.resize(size_t{rows} * linear.inputs);
    normalise(in.rows, in.norm, in.epsilon, normed.data());
    x = normed.data();
  }
  std::vector<float> to(size_t{rows} * outputs);
  pool_.split(outputs, kPanel, [&](uint32_t begin, uint32_t end) {
    for (uint32_t n = begin; n < end; n += kPanel)
      ops_.linear_f32({.weights = linear.panels.data() + size_t{n} * linear.inputs,
                       .inputs = linear.inputs,
                       .outputs = std::min(kPanel, end - n),
                       .rows = rows,
                       .x = x,
                       .x_stride = linear.inputs,
                       .out = to.data() + n,
                       .out_stride = outputs});
  });
  return to;
}

void ReferenceBackend::linear(std::span<const LinearHandle> weights, const LinearInput& in,
                              std::span<const Rows> out) {
  TROUPE_ASSERT(weights.size() == out.size(), weights.size(), out.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    TROUPE_ASSERT(out[i].rows == in.rows.rows, out[i].rows, in.rows.rows);
    const std::vector<float> product = multiplied(weights[i], in, out[i].width);
    std::copy(product.begin(), product.end(), buffers_.floats(out[i]));
  }
}

void ReferenceBackend::linear_add(LinearHandle weights, const LinearInput& in, Rows x) {
  TROUPE_ASSERT(x.rows == in.rows.rows, x.rows, in.rows.rows);
  const std::vector<float> product = multiplied(weights, in, x.width);
  float* to = buffers_.floats(x);
  for (size_t i = 0; i < product.size(); ++i) to[i] += product[i];
}

void ReferenceBackend::gated_linear(LinearHandle gate, LinearHandle up, const LinearInput& in,
                                    Activation activation, Rows out) {
  TROUPE_ASSERT(out.rows == in.rows.rows, out.rows, in.rows.rows);
  const std::vector<float> gates = multiplied(gate, in, out.width);
  const std::vector<float> ups = multiplied(up, in, out.width);
  float* to = buffers_.floats(out);
  for (size_t i = 0; i < gates.size(); ++i) to[i] = activate(activation, gates[i]) * ups[i];
}

void ReferenceBackend::rope_and_store(Rows q, Rows k, Rows v, KvHandle kv,
                                      const AttentionLayer& layer) {
  const KvPool& pool = kv_pools_.get(kv);
  const uint32_t head_dim = pool.shape.head_dim;
  const HostRotations& rotations = batch_.rotations(layer.rope);
  const RopeTable& rope = rotations.rope();
  const auto rotate = rope.pairs == RopePairs::kAdjacent ? ops_.rotate : ops_.rotate_halves;
  TROUPE_ASSERT(q.rows == batch_.rows() && k.rows == q.rows && v.rows == q.rows, q.rows);
  TROUPE_ASSERT(k.width == pool.shape.kv_heads * head_dim && v.width == k.width, k.width, v.width);
  for (uint32_t r = 0; r < q.rows; ++r) {
    float* query = buffers_.floats(q) + size_t{r} * q.width;
    float* key = buffers_.floats(k) + size_t{r} * k.width;
    const float* value = buffers_.floats(v) + size_t{r} * v.width;
    for (uint32_t d = 0; d < q.width; d += head_dim)
      rotate(query + d, rotations.cosines(r), rotations.sines(r), rope.rotated_dim);
    for (uint32_t d = 0; d < k.width; d += head_dim)
      rotate(key + d, rotations.cosines(r), rotations.sines(r), rope.rotated_dim);
    const uint32_t token = batch_.position(r) % kBlockTokens;
    const size_t block = batch_.block(r, pool.shape.windowed) * pool.layout.block_stride;
    for (uint32_t h = 0; h < pool.shape.kv_heads; ++h) {
      auto* keys = reinterpret_cast<float*>(pool.keys(layer.index, h) + block);
      auto* values = reinterpret_cast<float*>(pool.values(layer.index, h) + block) +
                     size_t{token} * padded_head(head_dim);
      for (uint32_t d = 0; d < head_dim; ++d) {
        keys[d * kBlockTokens + token] = key[h * head_dim + d];
        values[d] = value[h * head_dim + d];
      }
    }
  }
}

void ReferenceBackend::attention(Rows q, KvHandle kv, const AttentionLayer& layer, Rows out) {
  const KvPool& pool = kv_pools_.get(kv);
  const uint32_t head_dim = pool.shape.head_dim;
  const uint32_t heads = q.width / head_dim;
  const uint32_t group = heads / pool.shape.kv_heads;
  TROUPE_ASSERT(q.rows == batch_.rows() && out.rows == q.rows && out.width == q.width, q.rows,
                out.rows, q.width, out.width);
  for (const HostBatch::Slice& slice : batch_.slices()) {
    pool_.split(slice.rows * heads, 1, [&](uint32_t begin, uint32_t end) {
      std::vector<double> weights;
      for (uint32_t i = begin; i < end; ++i) {
        const uint32_t row = slice.first_row + i / heads;
        const uint32_t head = i % heads;
        const size_t at = size_t{row} * q.width + size_t{head} * head_dim;
        const uint32_t end = batch_.position(row) + 1;
        attend({.query = buffers_.floats(q) + at,
                .keys = reinterpret_cast<const float*>(pool.keys(layer.index, head / group)),
                .values = reinterpret_cast<const float*>(pool.values(layer.index, head / group)),
                .blocks = batch_.blocks(slice, pool.shape.windowed),
                .block_stride = pool.layout.block_stride / sizeof(float),
                .head_dim = head_dim,
                .begin = layer.window != 0 && end > layer.window ? end - layer.window : 0,
                .end = end,
                .scale = layer.scale},
               weights, buffers_.floats(out) + at);
      }
    });
  }
}

void ReferenceBackend::attend(const Head& head, std::vector<double>& weights, float* out) const {
  weights.resize(head.end);
  double greatest = -std::numeric_limits<double>::infinity();
  for (uint32_t b = head.begin / kBlockTokens; b * kBlockTokens < head.end; ++b) {
    // A block of keys is a linear layer from a query to sixteen scores.
    static_assert(kBlockTokens == kPanel);
    float scores[kPanel];
    ops_.linear_f32({.weights = head.keys + head.blocks[b] * head.block_stride,
                     .inputs = head.head_dim,
                     .outputs = kPanel,
                     .rows = 1,
                     .x = head.query,
                     .x_stride = head.head_dim,
                     .out = scores,
                     .out_stride = kPanel});
    const uint32_t first = b * kBlockTokens;
    for (uint32_t t = std::max(first, head.begin); t < std::min(first + kPanel, head.end); ++t) {
      weights[t] = static_cast<double>(scores[t - first] * head.scale);
      greatest = std::max(greatest, weights[t]);
    }
  }
  double sum = 0.0;
  for (uint32_t t = head.begin; t < head.end; ++t) {
    weights[t] = std::exp(weights[t] - greatest);
    sum += weights[t];
  }
  std::fill_n(out, head.head_dim, 0.0F);
  for (uint32_t t = head.begin; t < head.end; ++t) {
    const float* values = head.values + head.blocks[t / kBlockTokens] * head.block_stride +
                          size_t{t % kBlockTokens} * padded_head(head.head_dim);
    const auto weight = static_cast<float>(weights[t] / sum);
    for (uint32_t d = 0; d < head.head_dim; ++d) out[d] += weight * values[d];
  }
}

void ReferenceBackend::add_vector(Rows x, VectorHandle vector) {
  const std::span<const float> from = tensors_.vector(vector);
  TROUPE_ASSERT(x.width == from.size(), x.width, from.size());
  float* to = buffers_.floats(x);
  for (size_t i = 0; i < size_t{x.rows} * x.width; ++i) to[i] += from[i % x.width];
}

void ReferenceBackend::scale(Rows x, float factor) {
  float* to = buffers_.floats(x);
  for (size_t i = 0; i < size_t{x.rows} * x.width; ++i) to[i] *= factor;
}

void ReferenceBackend::gather_rows(Rows in, std::span<const uint32_t> indices, Rows out) {
  TROUPE_ASSERT(out.rows == indices.size() && in.width == out.width, out.rows, indices.size());
  for (size_t i = 0; i < indices.size(); ++i) {
    TROUPE_ASSERT(indices[i] < in.rows, indices[i], in.rows);
    std::memcpy(buffers_.floats(out) + i * out.width,
                buffers_.floats(in) + size_t{indices[i]} * in.width, out.width * sizeof(float));
  }
}

}  // namespace troupe
