#pragma once
// The device: executes the plans it is given, in order. A device that has failed once refuses all
// further plans with the same status, so that the worker ends its requests instead of waiting.

#include "engine/model/executor.h"

namespace troupe {

class DeviceCore {
 public:
  // The executor must outlive the core and is used by nobody else.
  explicit DeviceCore(Executor& executor) : executor_(executor) {}

  // Blocks the device's thread for the length of the step.
  [[nodiscard]] Result<StepResult> on_step(const StepPlan& plan);

 private:
  Executor& executor_;
  Status failed_;
};

}  // namespace troupe
