#include "engine/backend/cpu/cpu_backend.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/assert.h"

namespace troupe {
namespace {

std::string describe(const CpuBackendOptions& options) {
  return "cpu " + std::string(to_string(options.isa)) + ", " + std::to_string(options.threads) +
         (options.threads == 1 ? " thread" : " threads");
}

// Per thread: the kernel's own scratch, then two sets of partials.
size_t attention_floats(uint32_t head_dim) {
  return attention_scratch_floats(kAttentionQueriesMax, head_dim) +
         size_t{2} * kAttentionQueriesMax * partial_floats(head_dim);
}

// Packs rows [begin, end), and gives back what it has read of the file every kBandBytes: a tensor
// that were resident until its end would count twice.
Status pack_rows(const TensorSource& source, uint32_t begin, uint32_t end, PackedLinear& packed) {
  constexpr size_t kBandBytes = size_t{4} << 20;
  const size_t row_bytes = row_bytes_of(source);
  const auto band = static_cast<uint32_t>(kBandBytes / row_bytes / kLinearGroup + 1) * kLinearGroup;
  for (uint32_t n = begin; n < end; n += band) {
    const uint32_t last = end - n > band ? n + band : end;
    TROUPE_RETURN_IF_ERROR(packed.pack_rows(source.bytes.data(), n, last));
    if (source.release) source.release(source.bytes.subspan(n * row_bytes, (last - n) * row_bytes));
  }
  return ok_status();
}

}  // namespace

CpuBackend::CpuBackend(const CpuBackendOptions& options)
    : isa_(options.isa),
      ops_(ops_for(options.isa)),
      pool_(options.threads, options.clock),
      description_(describe(options)) {
  TROUPE_ASSERT(supports(options.isa), to_string(options.isa));
  workspaces_.resize(options.threads);
}

Result<BufferHandle> CpuBackend::allocate(uint64_t bytes, MemoryKind kind) {
  return buffers_.allocate(bytes, kind);
}

void CpuBackend::release(BufferHandle buffer) {
  buffers_.release(buffer);
}

std::span<std::byte> CpuBackend::host_bytes(BufferHandle buffer) {
  return buffers_.pinned(buffer);
}

void CpuBackend::copy(BufferHandle to, uint64_t to_offset, BufferHandle from, uint64_t from_offset,
                      uint64_t bytes) {
  auto* const out = buffers_.at(to, to_offset, bytes);
  const auto* const in = buffers_.at(from, from_offset, bytes);
  // Logits of many rows take as long to copy as a layer to compute.
  constexpr uint64_t kPage = 4096;
  constexpr uint32_t kCopyPages = 16;  // at least, on a thread
  const auto pages = static_cast<uint32_t>((bytes + kPage - 1) / kPage);
  pool_.split(pages, kCopyPages, [&](uint32_t begin, uint32_t end) {
    const uint64_t first = begin * kPage;
    std::memcpy(out + first, in + first, std::min(end * kPage, bytes) - first);
  });
}

void CpuBackend::run_on_host(uint32_t count, uint32_t workers_max, const HostTask& task) {
  pool_.each(count, task, workers_max);
}

EventHandle CpuBackend::record_event() {
  return EventHandle(++events_);
}

Result<bool> CpuBackend::query(EventHandle event) {
  TROUPE_ASSERT(event.value >= 1 && event.value <= events_, event, events_);
  return true;
}

Status CpuBackend::wait(EventHandle event, Duration) {
  return query(event).status();
}

Result<LinearHandle> CpuBackend::upload_linear(const TensorSource& source) {
  TROUPE_RETURN_IF_ERROR(check_source(source));
  const auto named = [&](const Status& status) {
    return Status(status.code(), "tensor " + describe(source) + ": " + status.message());
  };
  auto created = PackedLinear::create(source.type, source.outputs, source.inputs);
  if (!created.ok()) return named(created.status());
  std::unique_ptr<PackedLinear> packed = std::move(created).value();
  std::mutex mutex;
  Status failure;
  pool_.split(source.outputs, kLinearGroup, [&](uint32_t begin, uint32_t end) {
    Status status = pack_rows(source, begin, end, *packed);
    if (status.ok()) return;
    const std::lock_guard lock(mutex);
    failure = std::move(status);
  });
  if (!failure.ok()) return named(failure);
  inputs_max_ = std::max(inputs_max_, source.inputs);
  linear_bytes_ += packed->bytes();
  linears_.push_back(std::move(packed));
  return LinearHandle(static_cast<uint32_t>(linears_.size()));
}

Result<EmbeddingHandle> CpuBackend::upload_embedding(const TensorSource& source) {
  return tensors_.add_embedding(source);
}

Result<VectorHandle> CpuBackend::upload_vector(const TensorSource& source) {
  return tensors_.add_vector(source);
}

Result<RopeHandle> CpuBackend::make_rope(const RopeParameters& parameters) {
  return ropes_.add(parameters);
}

uint64_t CpuBackend::weight_bytes() const {
  return linear_bytes_ + tensors_.bytes();
}

Result<KvHandle> CpuBackend::allocate_kv(const KvShape& shape) {
  const size_t bytes = attention_floats(shape.head_dim) * sizeof(float);
  for (Workspace& own : workspaces_) {
    if (own.attention.bytes() >= bytes) continue;
    own.attention = AlignedBuffer(bytes);
    if (own.attention.empty())
      return Status(StatusCode::kResourceExhausted,
                    "no memory for " + std::to_string(bytes) + " bytes of attention scratch");
  }
  TROUPE_ASSERT(shape.type != KvType::kF32, shape.layers);
  return kv_pools_.add(shape, buffers_);
}

KvLayout CpuBackend::kv_layout(KvHandle kv) const {
  return kv_pools_.get(kv).layout;
}

std::span<std::byte> CpuBackend::kv_memory(KvHandle kv) {
  const KvPool& pool = kv_pools_.get(kv);
  return {pool.base, pool.shape.blocks * pool.layout.block_stride};
}

void CpuBackend::copy_block(KvHandle kv, BlockIndex from, BlockIndex to) {
  kv_pools_.copy_block(kv, from, to);
}

void CpuBackend::set_batch(const Batch& batch, std::span<const RopeHandle> ropes) {
  batch_.set(batch, ropes, ropes_);
  for (WindowPlan& plan : plans_) plan.is_current = false;
}

void CpuBackend::embed(EmbeddingHandle table, Rows out) {
  TROUPE_ASSERT(out.rows == batch_.rows(), out.rows, batch_.rows());
  float* to = buffers_.floats(out);
  over_rows(out.rows, out.width, [&](uint32_t begin, uint32_t end) {
    for (uint32_t r = begin; r < end; ++r)
      tensors_.embed(table, batch_.token(r), {to + size_t{r} * out.width, out.width});
  });
  tensors_.looked_up(table, out.rows);
}

void CpuBackend::rms_norm(Rows in, VectorHandle weight, float epsilon, Rows out) {
  const std::span<const float> weights = tensors_.vector(weight);
  TROUPE_ASSERT(in.rows == out.rows && in.width == out.width && in.width == weights.size(), in.rows,
                out.rows, in.width, out.width, weights.size());
  const float* from = buffers_.floats(in);
  float* to = buffers_.floats(out);
  over_rows(in.rows, in.width, [&](uint32_t begin, uint32_t end) {
    for (size_t r = begin; r < end; ++r)
      ops_.rms_norm(from + r * in.width, weights.data(), epsilon, in.width, to + r * in.width);
  });
}

void CpuBackend::rope_and_store(Rows q, Rows k, Rows v, KvHandle kv, const AttentionLayer& layer) {
  const KvPool& pool = kv_pools_.get(kv);
  const KvOps& kv_ops = ops_.kv(pool.shape.type);
  const uint32_t head_dim = pool.shape.head_dim;
  const HostRotations& rotations = batch_.rotations(layer.rope);
  const RopeTable& rope = rotations.rope();
  const auto rotate = rope.pairs == RopePairs::kAdjacent ? ops_.rotate : ops_.rotate_halves;
  TROUPE_ASSERT(layer.index < pool.shape.layers && head_dim == rope.head_dim, layer.index, head_dim,
                rope.head_dim);
  TROUPE_ASSERT(q.rows == batch_.rows() && k.rows == q.rows && v.rows == q.rows, q.rows, k.rows,
                v.rows, batch_.rows());
  TROUPE_ASSERT(k.width == pool.shape.kv_heads * head_dim && v.width == k.width, k.width, v.width);
  TROUPE_ASSERT(q.width % k.width == 0, q.width, k.width);
  float* query = buffers_.floats(q);
  float* key = buffers_.floats(k);
  const float* value = buffers_.floats(v);
  over_rows(q.rows, q.width + 2 * k.width, [&](uint32_t begin, uint32_t end) {
    for (uint32_t r = begin; r < end; ++r) {
      const auto rotate_heads = [&](float* row, uint32_t width) {
        for (uint32_t d = 0; d < width; d += head_dim)
          rotate(row + d, rotations.cosines(r), rotations.sines(r), rope.rotated_dim);
      };
      float* key_row = key + size_t{r} * k.width;
      rotate_heads(query + size_t{r} * q.width, q.width);
      rotate_heads(key_row, k.width);
      const size_t block = batch_.block(r, pool.shape.windowed) * pool.layout.block_stride;
      const uint32_t token = batch_.position(r) % kBlockTokens;
      for (uint32_t h = 0; h < pool.shape.kv_heads; ++h) {
        kv_ops.store_key(key_row + size_t{h} * head_dim, head_dim, token,
                         pool.keys(layer.index, h) + block);
        kv_ops.store_value(value + size_t{r} * v.width + size_t{h} * head_dim, head_dim, token,
                           pool.values(layer.index, h) + block);
      }
    }
  });
}

void CpuBackend::add_normed(Rows x, Rows y, VectorHandle weight, float epsilon) {
  const std::span<const float> weights = tensors_.vector(weight);
  TROUPE_ASSERT(x.rows == y.rows && x.width == y.width && x.width == weights.size(), x.rows, y.rows,
                x.width, y.width, weights.size());
  float* to = buffers_.floats(x);
  float* from = buffers_.floats(y);
  over_rows(x.rows, x.width, [&](uint32_t begin, uint32_t end) {
    for (size_t r = begin; r < end; ++r) {
      float* normed = from + r * x.width;
      ops_.rms_norm(normed, weights.data(), epsilon, x.width, normed);
      ops_.add(to + r * x.width, normed, x.width);
    }
  });
}

void CpuBackend::add_vector(Rows x, VectorHandle vector) {
  const std::span<const float> from = tensors_.vector(vector);
  TROUPE_ASSERT(x.width == from.size(), x.width, from.size());
  float* to = buffers_.floats(x);
  over_rows(x.rows, x.width, [&](uint32_t begin, uint32_t end) {
    for (size_t r = begin; r < end; ++r) ops_.add(to + r * x.width, from.data(), x.width);
  });
}

void CpuBackend::scale(Rows x, float factor) {
  float* to = buffers_.floats(x);
  over_rows(x.rows, x.width, [&](uint32_t begin, uint32_t end) {
    ops_.scale(to + size_t{begin} * x.width, factor, size_t{end - begin} * x.width);
  });
}

void CpuBackend::gather_rows(Rows in, std::span<const uint32_t> indices, Rows out) {
  TROUPE_ASSERT(out.rows == indices.size() && in.width == out.width, out.rows, indices.size(),
                in.width, out.width);
  const float* from = buffers_.floats(in);
  float* to = buffers_.floats(out);
  for (size_t i = 0; i < indices.size(); ++i) {
    TROUPE_ASSERT(indices[i] < in.rows, indices[i], in.rows);
    std::memcpy(to + i * out.width, from + size_t{indices[i]} * in.width,
                out.width * sizeof(float));
  }
}

}  // namespace troupe
