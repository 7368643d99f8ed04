#pragma once
// A backend that passes everything on to another one and measures each operation: its time, the
// least bytes that it moves and what it multiplies. For `troupe profile`; it waits after every
// operation, so that a device with a queue of its own is measured right, and slower.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "engine/backend/backend.h"

namespace troupe {

// All calls of one operation, e.g. of a linear layer in every block of the model.
struct OperationProfile {
  std::string name;  // "linear attn_q attn_k attn_v"
  uint64_t calls = 0;
  Duration time{};
  // Of all the threads that compute, together: time at work. The rest of threads x time they wait.
  Duration busy{};
  // Weights once per call; KV that is seen once per sequence; activations that are read or written.
  double bytes = 0.0;
  double operations = 0.0;  // products and sums of linear layers and attention; others count as 0
};

class ProfilingBackend final : public Backend {
 public:
  // Time at work of all threads since the start; null: not known.
  using BusyTime = std::function<Duration()>;

  // The references must outlive it.
  ProfilingBackend(Backend& inner, const Clock& clock, BusyTime busy_time);

  // By falling time. reset() forgets them.
  [[nodiscard]] std::vector<OperationProfile> operations() const;
  void reset() { profiles_.clear(); }

  [[nodiscard]] std::string_view description() const override { return inner_.description(); }
  [[nodiscard]] Result<BufferHandle> allocate(uint64_t bytes, MemoryKind kind) override;
  void release(BufferHandle buffer) override { inner_.release(buffer); }
  [[nodiscard]] std::span<std::byte> host_bytes(BufferHandle buffer) override;
  void copy(BufferHandle to, uint64_t to_offset, BufferHandle from, uint64_t from_offset,
            uint64_t bytes) override;
  [[nodiscard]] EventHandle record_event() override { return inner_.record_event(); }
  [[nodiscard]] Result<bool> query(EventHandle event) override { return inner_.query(event); }
  [[nodiscard]] Status wait(EventHandle event, Duration patience) override;
  [[nodiscard]] uint32_t host_workers() const override { return inner_.host_workers(); }
  void run_on_host(uint32_t count, uint32_t workers_max, const HostTask& task) override;
  [[nodiscard]] Result<LinearHandle> upload_linear(const TensorSource& source) override;
  [[nodiscard]] Result<EmbeddingHandle> upload_embedding(const TensorSource& source) override;
  [[nodiscard]] Result<VectorHandle> upload_vector(const TensorSource& source) override;
  [[nodiscard]] Result<RopeHandle> make_rope(const RopeParameters& parameters) override;
  [[nodiscard]] uint64_t weight_bytes() const override { return inner_.weight_bytes(); }
  [[nodiscard]] Result<KvHandle> allocate_kv(const KvShape& shape) override;
  [[nodiscard]] KvLayout kv_layout(KvHandle kv) const override { return inner_.kv_layout(kv); }
  [[nodiscard]] std::span<std::byte> kv_memory(KvHandle kv) override;
  void copy_block(KvHandle kv, BlockIndex from, BlockIndex to) override;
  [[nodiscard]] Status prepare(uint32_t rows_max) override { return inner_.prepare(rows_max); }

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
  struct Linear {
    std::string role;  // "attn_q": the tensor's name without block and ending
    double bytes = 0.0;
    double weights = 0.0;
  };
  struct Slice {
    uint32_t position, rows;
  };
  struct Work {
    double bytes = 0.0;
    double operations = 0.0;
  };

  // Runs `call` and books it under `name`.
  template <class Call>
  void timed(std::string_view name, const Work& work, const Call& call);
  [[nodiscard]] const Linear& linear_of(LinearHandle handle) const;
  [[nodiscard]] Work attention_work(Rows q, KvHandle kv, uint32_t window) const;

  Backend& inner_;
  const Clock& clock_;
  const BusyTime busy_time_;
  std::vector<Linear> linears_;        // by handle - 1
  std::map<uint32_t, KvShape> pools_;  // by handle
  std::vector<Slice> batch_;
  std::map<std::string, OperationProfile, std::less<>> profiles_;
};

}  // namespace troupe
