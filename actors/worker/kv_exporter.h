#pragma once
// Sends the KV that a step completes to where it is decoded, layer by layer while the step runs.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "actors/worker/kv_memory.h"
#include "engine/model/layer_listener.h"
#include "troupe/transport.h"

namespace troupe {

// The device's thread calls it. A step that fails on its way is not reported: its device is of no
// further use.
class KvExporter final : public LayerListener {
 public:
  // Exactly once for each KvExport of a plan, when the last of its layers has arrived or failed to:
  // its blocks are read no more. Called on the transport's thread or the device's; must not
  // block.
  using Exported = std::function<void(uint64_t landing, Status status)>;

  // `transport` must outlive this object and ends, or drops, what is under way before this object
  // is destroyed. `kv` is registered there.
  KvExporter(Transport& transport, const WorkerKv& kv, Exported exported);

  void on_layer_stored(const StepPlan& plan, uint32_t layer) override;

 private:
  struct Flight;
  void move_layer(const KvExport& exported, uint32_t layer, const std::shared_ptr<Flight>& flight);

  Transport& transport_;
  const WorkerKv kv_;
  const Exported exported_;
  std::vector<std::shared_ptr<Flight>> flights_;  // of the current plan's exports
};

}  // namespace troupe
