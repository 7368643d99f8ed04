#pragma once
// The backend of the host's processor: quantised linear layers with exact integer sums
// (kernels/linear), all other operations by kernels/ops, KV in binary16 or in 8 bits. Its stream
// executes at once, on the calling thread and a pool of helpers.

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
  const Clock* clock = nullptr;  // what busy_time() is measured by; it outlives the backend
};

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const CpuBackendOptions& options);

  // The time that all threads together have been at work on operations; zero without a clock.
  [[nodiscard]] Duration busy_time() const { return pool_.busy_time(); }

  [[nodiscard]] std::string_view description() const override { return description_; }

  [[nodiscard]] Result<BufferHandle> allocate(uint64_t bytes, MemoryKind kind) override;
  void release(BufferHandle buffer) override;
  [[nodiscard]] std::span<std::byte> host_bytes(BufferHandle buffer) override;
  void copy(BufferHandle to, uint64_t to_offset, BufferHandle from, uint64_t from_offset,
            uint64_t bytes) override;

  [[nodiscard]] EventHandle record_event() override;
  [[nodiscard]] Result<bool> query(EventHandle event) override;
  [[nodiscard]] Status wait(EventHandle event, Duration patience) override;

  [[nodiscard]] uint32_t host_workers() const override { return pool_.threads(); }
  void run_on_host(uint32_t count, uint32_t workers_max, const HostTask& task) override;

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
  void linear(std::span<const LinearHandle> weights, const LinearInput& in,
              std::span<const Rows> out) override;
  void linear_add(LinearHandle weights, const LinearInput& in, Rows x) override;
  void gated_linear(LinearHandle gate, LinearHandle up, const LinearInput& in,
                    Activation activation, Rows out) override;
  void rope_and_store(Rows q, Rows k, Rows v, KvHandle kv, const AttentionLayer& layer) override;
  void attention(Rows q, KvHandle kv, const AttentionLayer& layer, Rows out) override;
  void add_normed(Rows x, Rows y, VectorHandle weight, float epsilon) override;
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

  // Memory of one thread.
  struct Workspace {
    AlignedBuffer attention;                    // attention_floats() of ops.h, and two partials
    std::unique_ptr<QuantizedActivations> few;  // up to kFewRows rows, of this thread alone
    AlignedBuffer normed;                       // one row
    AlignedBuffer columns;                      // of some outputs, all rows: columns_floats_
  };

  // Runs task(begin, end) over `rows`, on all threads when they hold enough floats to be worth it.
  template <class Task>
  void over_rows(uint32_t rows, uint32_t width, const Task& task) {
    if (uint64_t{rows} * width < kParallelFloats)
      task(uint32_t{0}, rows);
    else
      pool_.split(rows, 1, task);
  }
  // The layer, of the shape that the caller takes it to have (asserted).
  [[nodiscard]] const PackedLinear& packed(LinearHandle handle, uint32_t inputs,
                                           uint32_t outputs) const;
  // Rows [begin, end) of `in`, normalised where it says so, as integers into `to`.
  void prepare_rows(const LinearInput& in, uint32_t begin, uint32_t end, Workspace& own,
                    QuantizedActivations& to) const;
  // What the input of all these layers has to be made of.
  [[nodiscard]] ActivationForms forms(std::span<const PackedLinear* const> layers,
                                      uint32_t rows) const;
  // Prepares the input for the layers, then calls use(input, begin, end, workspace) on each
  // thread's share of [0, units).
  template <class Use>
  void over_outputs(std::span<const PackedLinear* const> layers, const LinearInput& in,
                    uint32_t units, const Use& use);
  template <class Use>
  void over_columns(const PackedLinear& layer, uint32_t rows, uint32_t begin, uint32_t end,
                    const Use& use) const;
  [[nodiscard]] AttentionPlan& plan_for(const AttentionCall& call);
  void segment(const AttentionCall& call, const AttentionPlan::Piece& piece, uint32_t index,
               float* partials, float* scratch) const;
  void attend(const AttentionCall& call, const AttentionPlan::Piece& piece, float* scratch);
  void merge_and_finish(const AttentionCall& call, AttentionPlan& plan,
                        const AttentionPlan::Piece& piece);
  void finish(const AttentionCall& call, const AttentionPlan::Piece& piece,
              const float* partials) const;

  // Floats that one thread handles in the time that it takes to call another.
  static constexpr uint64_t kParallelFloats = 2048;
  // Up to so many rows each thread prepares a layer's input for itself, sooner than they could
  // meet.
  static constexpr uint32_t kFewRows = 2;
  // Floats of a thread's columns: a part of its second-level cache. For many rows, kColumnsMin
  // outputs of all of them.
  static constexpr size_t kColumnsFloats = size_t{1} << 14;
  static constexpr uint32_t kColumnsMin = 2 * kLinearGroup;

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
  std::vector<WindowPlan> plans_;      // one or two
  std::vector<Workspace> workspaces_;  // by thread
  size_t columns_floats_ = 0;
  uint64_t events_ = 0;
};

}  // namespace troupe
