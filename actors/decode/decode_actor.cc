#include "actors/decode/decode_actor.h"

#include <glog/logging.h>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include "actors/device/device_actor.h"
#include "actors/kv_cache_manager/kv_cache_manager_actor.h"
#include "actors/wire/codec.h"
#include "actors/wire/inbox_actor.h"
#include "base/limits.h"

namespace troupe {
namespace {

using TickAtom = caf::atom_constant<caf::atom("tick")>;

struct DecodeState;
using Self = caf::stateful_actor<DecodeState>;

// The core's ports as mail to the worker's other actors.
class ActorPorts final : public WorkerPorts {
 public:
  ActorPorts(Self* self, caf::actor device, caf::actor manager)
      : self_(self), device_(std::move(device)), manager_(std::move(manager)) {}
  void ask_kv(std::vector<KvRequest> requests) override;
  void submit(StepPlan plan) override;

 private:
  Self* self_;
  caf::actor device_, manager_;
};

struct DecodeState {
  std::unique_ptr<ActorPorts> ports;
  std::unique_ptr<DecodeCore> core;
};

void ActorPorts::ask_kv(std::vector<KvRequest> requests) {
  self_->send(manager_,
              KvRequestBatch{std::make_shared<const std::vector<KvRequest>>(std::move(requests))});
}

void ActorPorts::submit(StepPlan plan) {
  self_->send(device_, DeviceStep{std::make_shared<const StepPlan>(std::move(plan))});
}

void dispatch(DecodeCore& core, wire::Message message) {
  if (auto* routed = std::get_if<wire::Routed>(&message)) return core.on_routed(std::move(*routed));
  if (auto* cancelled = std::get_if<wire::Cancelled>(&message))
    return core.on_cancelled(*cancelled);
  LOG(WARNING) << "decode: dropped a message that is not for a worker";
}

caf::behavior decode(Self* self, const Clock* clock, wire::Outbox* outbox, ServingMetrics* metrics,
                     const DecodeOptions& options, const caf::actor& device,
                     const caf::actor& manager) {
  self->state.ports = std::make_unique<ActorPorts>(self, device, manager);
  self->state.core =
      std::make_unique<DecodeCore>(*clock, *outbox, *self->state.ports, *metrics, options);
  self->link_to(device);
  self->link_to(manager);
  self->send(self, TickAtom::value);
  return {
      [self](const wire::Frame& frame) {
        auto message = wire::decode(*frame.words);
        if (!message.ok()) {
          LOG(WARNING) << "decode: " << message.status().message();
          return;
        }
        dispatch(*self->state.core, std::move(message).value());
      },
      [self](const KvReplyBatch& batch) { self->state.core->on_kv_replies(*batch.replies); },
      [self](const DeviceStepDone& done) { self->state.core->on_step_done(*done.result); },
      [self](TickAtom) {
        self->delayed_send(self, limits::kHeartbeatInterval, TickAtom::value);
        self->state.core->on_tick();
      },
  };
}

}  // namespace

caf::actor spawn_decode(caf::actor_system& system, const Clock& clock, wire::Outbox& outbox,
                        ServingMetrics& metrics, DecodeOptions options, const caf::actor& device,
                        const caf::actor& kv_cache_manager) {
  return system.spawn(decode, &clock, &outbox, &metrics, std::move(options), device,
                      kv_cache_manager);
}

}  // namespace troupe
