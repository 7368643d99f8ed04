#include "actors/device/device_actor.h"

#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

namespace troupe {
namespace {

struct DeviceState {
  std::unique_ptr<DeviceCore> core;
};

caf::behavior device(caf::stateful_actor<DeviceState>* self, Executor* executor) {
  self->state.core = std::make_unique<DeviceCore>(*executor);
  return {
      [self](const DeviceStep& step) {
        auto result =
            std::make_shared<const Result<StepResult>>(self->state.core->on_step(*step.plan));
        self->send(caf::actor_cast<caf::actor>(self->current_sender()),
                   DeviceStepDone{std::move(result)});
      },
  };
}

}  // namespace

caf::actor spawn_device(caf::actor_system& system, Executor& executor) {
  return system.spawn<caf::detached>(device, &executor);
}

}  // namespace troupe
