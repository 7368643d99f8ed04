#pragma once
#include <cstdint>

#include "engine/step.h"

namespace troupe {

// Hears how far a pass has come, so that what is finished can leave while the rest computes.
class LayerListener {
 public:
  virtual ~LayerListener() = default;
  // KV of this layer stands for all of the plan's slices, and its copies are made. Called on the
  // device's thread, layer after layer, for plans with exports; must not block.
  virtual void on_layer_stored(const StepPlan& plan, uint32_t layer) = 0;
};

}  // namespace troupe
