#pragma once
// A modelled device: takes the time that its cost model says, and computes what the pretended model
// says from the KV that really stands in the worker's blocks.

#include <functional>
#include <memory>

#include "actors/worker/kv_memory.h"
#include "engine/kv/block_pool.h"
#include "engine/model/layer_listener.h"
#include "engine/step.h"
#include "sim/cost_model.h"
#include "sim/process.h"
#include "sim/sim_model.h"

namespace troupe::sim {

// KV of one layer of a block: a number for each token.
inline constexpr uint64_t kSimBlockBytes = kBlockTokens * sizeof(uint64_t);

class SimDevice {
 public:
  using Done = std::function<void(Result<StepResult>)>;
  struct Options {
    SimModel model;
    CostModel cost;
    uint32_t step_tokens_max = 0;
    bool varies = false;  // when within a step its KV is stored, and how long steps take
  };
  // All outlive the device. `kv` belongs to this device; `pool` is asked who owns what.
  // `window_pool` is null where the model has no window.
  SimDevice(Process& process, const Options& options, const WorkerKv& kv, const BlockPool& pool,
            const BlockPool* window_pool, LayerListener* listener, Done done);

  // Precondition: none is being executed. `done` follows once, as mail.
  void execute(StepPlan plan);
  // Every step from now on, also the one being executed, fails.
  void fail() { failed_ = true; }
  // Steps take so many times as long from now on.
  void slow_down(double factor) { slowness_ = factor; }

  [[nodiscard]] Duration busy() const { return busy_; }
  [[nodiscard]] uint64_t steps() const { return steps_; }
  [[nodiscard]] uint64_t tokens() const { return tokens_; }

 private:
  // Copies and KV of one layer.
  void store_layer(const StepPlan& plan, uint32_t layer);
  void store_all_layers(const StepPlan& plan);
  void finish(const StepPlan& plan, TimePoint started);
  [[nodiscard]] SliceResult read(const StepSlice& slice);
  void check_access(const StepSlice& slice) const;
  void check_block(const StepSlice& slice, const BlockPool& pool, BlockIndex block,
                   bool is_written) const;
  void check_window(const StepSlice& slice) const;
  void sabotage(StepPlan& plan) const;
  void violate(const StepSlice& slice, const std::string& what) const;
  [[nodiscard]] std::span<std::byte> bytes_of(uint32_t layer, BlockIndex block,
                                              BlockIndex window_block) const;
  [[nodiscard]] uint64_t& place(uint32_t layer, const StepSlice& slice, uint32_t position) const;

  Process& process_;
  const Options options_;
  const WorkerKv kv_;
  const BlockPool& pool_;
  const BlockPool* const window_pool_;
  LayerListener* const listener_;
  const Done done_;
  bool executing_ = false, failed_ = false;
  double slowness_ = 1.0;
  Duration busy_{0};
  uint64_t steps_ = 0, tokens_ = 0;
};

}  // namespace troupe::sim
