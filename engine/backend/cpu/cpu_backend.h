#pragma once
// The backend of the host's processor: quantised linear layers with exact integer sums
// (kernels/linear), all other operations by kernels/ops, KV in binary16. Its stream executes at
// once, on the calling thread and a pool of helpers.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/cpu/attention_plan.h"
#include "engine/backend/cpu/host_store.h"
#include "engine/backend/cpu/thread_pool.h"
#include "kernels/cpu/isa.h"
#include "kernels/linear/linear.h"
#include "kernels/ops/ops.h"

namespace troupe {

struct CpuBackendOptions {
  uint32_t threads = 1;  // that compute, the caller's included; at most ThreadPool::kThreadsMax
  CpuIsa isa = CpuIsa::kScalar;  // must be supported (asserted); detect_best_cpu_isa() in earnest
};

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const CpuBackendOptions& options);

  [[nodiscard]] std::string_view description() const override { return description_; }

  [[nodiscard]] Result<BufferHandle> allocate(uint64_t bytes, MemoryKind kind) override;
  void release(BufferHandle buffer) override;
  [[nodiscard]] std::span<std::byte> host_bytes(BufferHandle buffer) override;
  void copy(BufferHandle to, uint64_t to_offset, BufferHandle from, uint64_t from_offset,
            uint64_t bytes) override;

  [[nodiscard]] EventHandle record_event() override;
  [[nodiscard]] Result<bool> query(EventHandle event) override;
  [[nodiscard]] Status wait(EventHandle event, Duration patience) override;

  [[nodiscard]] Result<LinearHandle> upload_linear(const TensorSource& source) override;
  [[nodiscard]] Result<EmbeddingHandle> upload_embedding(const TensorSource& source) override;
  [[nodiscard]] Result<VectorHandle> upload_vector(const TensorSource& source) override;
  [[nodiscard]] Result<RopeHandle> make_rope(const RopeParameters& parameters) override;
  [[nodiscard]] uint64_t weight_bytes() const override;

  [[nodiscard]] Result<KvHandle> allocate_kv(const KvShape& shape) override;
  [[nodiscard]] KvLayout kv_layout(KvHandle kv) const override;
  [[nodiscard]] std::span<std::byte> kv_memory(KvHandle kv) override;
  void copy_block(KvHandle kv, BlockIndex from, BlockIndex to) override;

  [[nodiscard]] Status prepare(uint32_t rows_max) override;
  void set_batch(const Batch& batch, std::span<const RopeHandle> ropes) override;
  void embed(EmbeddingHandle table, Rows out) override;
  void rms_norm(Rows in, VectorHandle weight, float epsilon, Rows out) override;
  void linear(std::span<const LinearHandle> weights, Rows in, std::span<const Rows> out) override;
  void rope_and_store(Rows q, Rows k, Rows v, KvHandle kv, const AttentionLayer& layer) override;
  void attention(Rows q, KvHandle kv, const AttentionLayer& layer, Rows out) override;
  void swiglu(Rows gate, Rows up, Rows out) override;
  void geglu(Rows gate, Rows up, Rows out) override;
  void add(Rows x, Rows y) override;
  void add_vector(Rows x, VectorHandle vector) override;
  void scale(Rows x, float factor) override;
  void gather_rows(Rows in, std::span<const uint32_t> indices, Rows out) override;

 private:
  // One attention() call.
  struct AttentionCall {
    const float* query;
    float* out;
    const KvPool* pool;
    AttentionLayer layer;
    uint32_t width, group;
  };
  // The plan of the batch's attention in layers of one window.
  struct WindowPlan {
    uint32_t window = 0;
    AttentionPlan plan;
    bool is_current = false;  // built for the batch
  };

  // Runs task(begin, end) over `rows`, on all threads when they hold enough floats to be worth it.
  template <class Task>
  void over_rows(uint32_t rows, uint32_t width, const Task& task) {
    if (uint64_t{rows} * width < kParallelFloats)
      task(uint32_t{0}, rows);
    else
      pool_.split(rows, 1, task);
  }
  // `task` is ops.swiglu or ops.geglu.
  void gated(void (*task)(const float*, const float*, size_t, float*), Rows gate, Rows up,
             Rows out);
  [[nodiscard]] AttentionPlan& plan_for(const AttentionCall& call);
  void segment(const AttentionCall& call, const AttentionPlan::Piece& piece, uint32_t index,
               float* partials, float* scratch) const;
  void attend(const AttentionCall& call, const AttentionPlan::Piece& piece, float* scratch);
  void merge_and_finish(const AttentionCall& call, AttentionPlan& plan,
                        const AttentionPlan::Piece& piece);
  void finish(const AttentionCall& call, const AttentionPlan::Piece& piece,
              const float* partials) const;

  // Floats that one thread handles in the time that it takes to call another.
  static constexpr uint64_t kParallelFloats = 8192;

  const CpuIsa isa_;
  const Ops& ops_;
  ThreadPool pool_;
  const std::string description_;
  HostBuffers buffers_;
  HostTensors tensors_;
  HostRopes ropes_;
  HostKvPools kv_pools_;
  HostBatch batch_;
  std::vector<std::unique_ptr<PackedLinear>> linears_;
  uint32_t inputs_max_ = 0;  // of all linear layers
  uint64_t linear_bytes_ = 0;
  std::unique_ptr<QuantizedActivations> quantized_;
  std::vector<WindowPlan> plans_;       // one or two
  std::vector<AlignedBuffer> scratch_;  // per thread
  uint64_t events_ = 0;
};

}  // namespace troupe
