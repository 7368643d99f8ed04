#include "actors/prefill/prefill_actor.h"

#include <glog/logging.h>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include "actors/wire/codec.h"
#include "actors/wire/inbox_actor.h"
#include "actors/worker/export_actor.h"
#include "actors/worker/mail_actor.h"
#include "actors/worker/ports_actor.h"
#include "actors/worker/refusal_log.h"
#include "base/limits.h"

namespace troupe {
namespace {

struct PrefillState {
  RefusalLog refusals;
  std::unique_ptr<ActorPorts> ports;
  std::shared_ptr<KvExporter> exporter;
  std::unique_ptr<PrefillCore> core;
};
using Self = caf::stateful_actor<PrefillState>;

void dispatch(PrefillCore& core, RefusalLog& refusals, wire::Message message) {
  if (auto* refused = std::get_if<wire::Refused>(&message)) return refusals.on_refused(*refused);
  if (auto* reserved = std::get_if<wire::Reserved>(&message))
    return core.on_reserved(std::move(*reserved));
  if (auto* released = std::get_if<wire::Released>(&message)) return core.on_released(*released);
  LOG(WARNING) << "prefill: dropped a message that is not for a prefill worker";
}

caf::behavior prefill(Self* self, const Clock* clock, wire::Outbox* outbox, ServingMetrics* metrics,
                      const PrefillOptions& options, const std::shared_ptr<KvExporter>& exporter,
                      const caf::actor& device, const caf::actor& manager) {
  self->state.ports = std::make_unique<ActorPorts>(self, device, manager);
  self->state.exporter = exporter;
  self->state.core =
      std::make_unique<PrefillCore>(*clock, *outbox, *self->state.ports, *metrics, options);
  self->link_to(device);
  self->link_to(manager);
  self->send(self, TickAtom::value);
  return {
      [self](const wire::Frame& frame) {
        auto message = wire::decode(*frame.words);
        if (!message.ok()) {
          LOG(WARNING) << "prefill: " << message.status().message();
          return;
        }
        dispatch(*self->state.core, self->state.refusals, std::move(message).value());
      },
      [self](const KvReplyBatch& batch) {
        self->state.core->on_kv_replies(*batch.replies, batch.stats);
      },
      [self](const DeviceStepDone& done) { self->state.core->on_step_done(*done.result); },
      [self](const ExportDone& done) { self->state.core->on_exported(done.landing, done.status); },
      [self](const wire::PeerLost& lost) { self->state.core->on_peer_lost(lost.node); },
      [self](TickAtom) {
        self->delayed_send(self, limits::kHeartbeatInterval, TickAtom::value);
        self->state.core->on_tick();
      },
      [self](DrainAtom) { self->state.core->drain(); },
      [self](IdleAtom) { return self->state.core->idle(); },
      [self](LeaveAtom) {
        self->state.core->leave();
        return true;
      },
  };
}

}  // namespace

PrefillWorker spawn_prefill(caf::actor_system& system, const Clock& clock, wire::Outbox& outbox,
                            ServingMetrics& metrics, PrefillOptions options, Transport& transport,
                            const KvMemory& kv, const caf::actor& device,
                            const caf::actor& kv_cache_manager) {
  const auto target = std::make_shared<MailTarget>();
  PrefillWorker worker;
  worker.exporter = make_exporter(transport, kv, target);
  worker.actor = system.spawn(prefill, &clock, &outbox, &metrics, std::move(options),
                              worker.exporter, device, kv_cache_manager);
  target->set(worker.actor);
  return worker;
}

}  // namespace troupe
