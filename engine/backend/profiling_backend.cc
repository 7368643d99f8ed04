#include "engine/backend/profiling_backend.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace troupe {
namespace {

// Longer than any operation; a device that takes longer fails at the executor's own wait.
constexpr Duration kPatience = std::chrono::minutes(5);

// "blk.7.attn_q.weight" -> "attn_q": what all blocks of the model have in common.
std::string role_of(std::string_view name) {
  constexpr std::string_view kBlock = "blk.";
  constexpr std::string_view kWeight = ".weight";
  if (name.starts_with(kBlock)) {
    const size_t end = name.find('.', kBlock.size());
    if (end != std::string_view::npos) name.remove_prefix(end + 1);
  }
  if (name.ends_with(kWeight)) name.remove_suffix(kWeight.size());
  return std::string(name);
}

double bytes_of(const Rows& rows) {
  return sizeof(float) * static_cast<double>(rows.rows) * rows.width;
}

}  // namespace

ProfilingBackend::ProfilingBackend(Backend& inner, const Clock& clock, BusyTime busy_time)
    : inner_(inner), clock_(clock), busy_time_(std::move(busy_time)) {}

std::vector<OperationProfile> ProfilingBackend::operations() const {
  std::vector<OperationProfile> all;
  for (const auto& [name, profile] : profiles_) all.push_back(profile);
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.time > b.time; });
  return all;
}

template <class Call>
void ProfilingBackend::timed(std::string_view name, const Work& work, const Call& call) {
  auto found = profiles_.find(name);
  if (found == profiles_.end())
    found = profiles_.emplace(name, OperationProfile{.name = std::string(name)}).first;
  OperationProfile& profile = found->second;
  const Duration busy = busy_time_ ? busy_time_() : Duration{};
  const TimePoint start = clock_.now();
  call();
  // A failure is the device's from then on: the executor's next wait reports it.
  static_cast<void>(inner_.wait(inner_.record_event(), kPatience));
  profile.time += clock_.now() - start;
  if (busy_time_) profile.busy += busy_time_() - busy;
  profile.bytes += work.bytes;
  profile.operations += work.operations;
  ++profile.calls;
}

Result<BufferHandle> ProfilingBackend::allocate(uint64_t bytes, MemoryKind kind) {
  return inner_.allocate(bytes, kind);
}

std::span<std::byte> ProfilingBackend::host_bytes(BufferHandle buffer) {
  return inner_.host_bytes(buffer);
}

Status ProfilingBackend::wait(EventHandle event, Duration patience) {
  return inner_.wait(event, patience);
}

Result<LinearHandle> ProfilingBackend::upload_linear(const TensorSource& source) {
  const uint64_t before = inner_.weight_bytes();
  TROUPE_ASSIGN_OR_RETURN(const LinearHandle handle, inner_.upload_linear(source));
  TROUPE_ASSERT(handle.value == linears_.size() + 1, handle, linears_.size());
  linears_.push_back({role_of(source.name), static_cast<double>(inner_.weight_bytes() - before),
                      static_cast<double>(source.inputs) * source.outputs});
  return handle;
}

Result<EmbeddingHandle> ProfilingBackend::upload_embedding(const TensorSource& source) {
  return inner_.upload_embedding(source);
}

Result<VectorHandle> ProfilingBackend::upload_vector(const TensorSource& source) {
  return inner_.upload_vector(source);
}

Result<RopeHandle> ProfilingBackend::make_rope(const RopeParameters& parameters) {
  return inner_.make_rope(parameters);
}

Result<KvHandle> ProfilingBackend::allocate_kv(const KvShape& shape) {
  TROUPE_ASSIGN_OR_RETURN(const KvHandle handle, inner_.allocate_kv(shape));
  pools_[handle.value] = shape;
  return handle;
}

std::span<std::byte> ProfilingBackend::kv_memory(KvHandle kv) {
  return inner_.kv_memory(kv);
}

void ProfilingBackend::copy(BufferHandle to, uint64_t to_offset, BufferHandle from,
                            uint64_t from_offset, uint64_t bytes) {
  timed("copy", {.bytes = 2.0 * static_cast<double>(bytes)},
        [&] { inner_.copy(to, to_offset, from, from_offset, bytes); });
}

void ProfilingBackend::run_on_host(uint32_t count, uint32_t workers_max, const HostTask& task) {
  timed("sample", {}, [&] { inner_.run_on_host(count, workers_max, task); });
}

void ProfilingBackend::copy_block(KvHandle kv, BlockIndex from, BlockIndex to) {
  const double bytes =
      static_cast<double>(inner_.kv_layout(kv).block_bytes) * pools_.at(kv.value).layers;
  timed("copy_block", {.bytes = 2.0 * bytes}, [&] { inner_.copy_block(kv, from, to); });
}

void ProfilingBackend::set_batch(const Batch& batch, std::span<const RopeHandle> ropes) {
  batch_.clear();
  for (const BatchSlice& slice : batch.slices) batch_.push_back({slice.position, slice.rows});
  timed("set_batch", {}, [&] { inner_.set_batch(batch, ropes); });
}

void ProfilingBackend::embed(EmbeddingHandle table, Rows out) {
  timed("embed", {.bytes = bytes_of(out)}, [&] { inner_.embed(table, out); });
}

void ProfilingBackend::rms_norm(Rows in, VectorHandle weight, float epsilon, Rows out) {
  timed("rms_norm", {.bytes = bytes_of(in) + bytes_of(out)},
        [&] { inner_.rms_norm(in, weight, epsilon, out); });
}

const ProfilingBackend::Linear& ProfilingBackend::linear_of(LinearHandle handle) const {
  TROUPE_ASSERT(handle.value >= 1 && handle.value <= linears_.size(), handle, linears_.size());
  return linears_[handle.value - 1];
}

void ProfilingBackend::linear(std::span<const LinearHandle> weights, const LinearInput& in,
                              std::span<const Rows> out) {
  std::string name = "linear";
  Work work{.bytes = bytes_of(in.rows)};
  for (size_t i = 0; i < weights.size(); ++i) {
    const Linear& linear = linear_of(weights[i]);
    name += " " + linear.role;
    work.bytes += linear.bytes + bytes_of(out[i]);
    work.operations += 2.0 * linear.weights * in.rows.rows;
  }
  timed(name, work, [&] { inner_.linear(weights, in, out); });
}

void ProfilingBackend::linear_add(LinearHandle weights, const LinearInput& in, Rows x) {
  const Linear& linear = linear_of(weights);
  timed("linear_add " + linear.role,
        {.bytes = linear.bytes + bytes_of(in.rows) + 2.0 * bytes_of(x),
         .operations = 2.0 * linear.weights * in.rows.rows},
        [&] { inner_.linear_add(weights, in, x); });
}

void ProfilingBackend::gated_linear(LinearHandle gate, LinearHandle up, const LinearInput& in,
                                    Activation activation, Rows out) {
  const Linear& first = linear_of(gate);
  const Linear& second = linear_of(up);
  timed("gated_linear " + first.role + " " + second.role,
        {.bytes = first.bytes + second.bytes + bytes_of(in.rows) + bytes_of(out),
         .operations = 2.0 * (first.weights + second.weights) * in.rows.rows},
        [&] { inner_.gated_linear(gate, up, in, activation, out); });
}

void ProfilingBackend::rope_and_store(Rows q, Rows k, Rows v, KvHandle kv,
                                      const AttentionLayer& layer) {
  const double stored = inner_.kv_layout(kv).token_bytes() * k.rows;
  timed("rope_and_store", {.bytes = 2.0 * bytes_of(q) + bytes_of(k) + bytes_of(v) + stored},
        [&] { inner_.rope_and_store(q, k, v, kv, layer); });
}

ProfilingBackend::Work ProfilingBackend::attention_work(Rows q, KvHandle kv,
                                                        uint32_t window) const {
  const double token_bytes = inner_.kv_layout(kv).token_bytes();
  Work work{.bytes = 2.0 * bytes_of(q)};
  for (const Slice& slice : batch_) {
    const uint32_t end = slice.position + slice.rows;
    const uint32_t first = slice.position + 1;
    work.bytes += token_bytes * (window == 0 || first <= window ? end : end - first + window);
    for (uint32_t seen = first; seen <= end; ++seen)
      work.operations += 4.0 * q.width * (window == 0 ? seen : std::min(seen, window));
  }
  return work;
}

void ProfilingBackend::attention(Rows q, KvHandle kv, const AttentionLayer& layer, Rows out) {
  timed(layer.window == 0 ? "attention" : "attention in a window",
        attention_work(q, kv, layer.window), [&] { inner_.attention(q, kv, layer, out); });
}

void ProfilingBackend::add_normed(Rows x, Rows y, VectorHandle weight, float epsilon) {
  timed("add_normed", {.bytes = 2.0 * bytes_of(x) + bytes_of(y)},
        [&] { inner_.add_normed(x, y, weight, epsilon); });
}

void ProfilingBackend::add_vector(Rows x, VectorHandle vector) {
  timed("add_vector", {.bytes = 2.0 * bytes_of(x)}, [&] { inner_.add_vector(x, vector); });
}

void ProfilingBackend::scale(Rows x, float factor) {
  timed("scale", {.bytes = 2.0 * bytes_of(x)}, [&] { inner_.scale(x, factor); });
}

void ProfilingBackend::gather_rows(Rows in, std::span<const uint32_t> indices, Rows out) {
  timed("gather_rows", {.bytes = 2.0 * bytes_of(out)},
        [&] { inner_.gather_rows(in, indices, out); });
}

}  // namespace troupe
