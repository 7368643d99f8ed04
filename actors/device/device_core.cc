#include "actors/device/device_core.h"

namespace troupe {

Result<StepResult> DeviceCore::on_step(const StepPlan& plan) {
  if (!failed_.ok()) return failed_;
  Result<StepResult> result = executor_.execute(plan);
  if (!result.ok()) failed_ = result.status();
  return result;
}

}  // namespace troupe
