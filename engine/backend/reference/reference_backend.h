#pragma once
// The oracle: weights de-quantised to fp32, activations and KV in fp32, every formula as it stands
// in Backend's comments. Slow and large (4 bytes a weight); for tests and for measuring the
// accuracy of the fast backends.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/cpu/host_store.h"
#include "engine/backend/cpu/thread_pool.h"
#include "kernels/cpu/isa.h"
#include "kernels/ops/ops.h"

namespace troupe {

class ReferenceBackend final : public Backend {
 public:
  // `isa` speeds up the linear layers; it does not change a bit of them.
  ReferenceBackend(uint32_t threads, CpuIsa isa);

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
  // Sixteen outputs at a time: panels[p][input][16], filled up with zeros.
  struct Linear {
    uint32_t inputs, outputs;
    std::vector<float> panels;
  };
  // One query head of one row over [begin, end).
  struct Head {
    const float* query;
    const float* keys;    // [dim][token] per block
    const float* values;  // [token][padded dim] per block
    const uint32_t* blocks;
    size_t block_stride;
    uint32_t head_dim, begin, end;
    float scale;
  };

  void normalise(Rows in, VectorHandle weight, float epsilon, float* out) const;
  // [row][output]
  [[nodiscard]] std::vector<float> multiplied(LinearHandle weights, const LinearInput& in,
                                              uint32_t outputs);
  void attend(const Head& head, std::vector<double>& weights, float* out) const;

  const Ops& ops_;
  ThreadPool pool_;
  const std::string description_;
  HostBuffers buffers_;
  HostTensors tensors_;
  HostRopes ropes_;
  HostKvPools kv_pools_;
  HostBatch batch_;
  std::vector<Linear> linears_;
  uint64_t linear_bytes_ = 0;
  uint64_t events_ = 0;
};

}  // namespace troupe
