#pragma once
#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/allowed_unsafe_message_type.hpp>

#include <memory>

#include "actors/device/device_core.h"

namespace troupe {

// decode -> device. The plan lives until its result has been taken.
struct DeviceStep {
  std::shared_ptr<const StepPlan> plan;
};

// device -> decode: the answer to one DeviceStep.
struct DeviceStepDone {
  std::shared_ptr<const Result<StepResult>> result;
};

// Spawns the device on a thread of its own. Its mailbox is the queue of the stream; the scheduler
// bounds it by the number of steps that it keeps in flight.
[[nodiscard]] caf::actor spawn_device(caf::actor_system& system, Executor& executor);

}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::DeviceStep)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::DeviceStepDone)
