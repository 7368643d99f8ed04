#include "actors/decode/decode_actor.h"

#include <glog/logging.h>
#include <caf/allowed_unsafe_message_type.hpp>
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

// The transport's thread -> decode.
struct LandingClosed {
  uint64_t landing = 0;
  uint32_t blocks = 0;
};

}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::LandingClosed)

namespace troupe {
namespace {

struct DecodeState {
  RefusalLog refusals;
  std::unique_ptr<ActorPorts> ports;
  std::shared_ptr<KvLandings> landings;
  std::shared_ptr<KvExporter> exporter;
  std::unique_ptr<DecodeCore> core;
};
using Self = caf::stateful_actor<DecodeState>;

void dispatch(DecodeCore& core, RefusalLog& refusals, wire::Message message) {
  if (auto* refused = std::get_if<wire::Refused>(&message)) return refusals.on_refused(*refused);
  if (auto* routed = std::get_if<wire::Routed>(&message)) return core.on_routed(std::move(*routed));
  if (auto* cancelled = std::get_if<wire::Cancelled>(&message))
    return core.on_cancelled(*cancelled);
  if (auto* prefilled = std::get_if<wire::Prefilled>(&message))
    return core.on_prefilled(*prefilled);
  if (auto* reserved = std::get_if<wire::Reserved>(&message))
    return core.on_reserved(std::move(*reserved));
  if (auto* released = std::get_if<wire::Released>(&message)) return core.on_released(*released);
  LOG(WARNING) << "decode: dropped a message that is not for a decode worker";
}

caf::behavior decode(Self* self, const Clock* clock, wire::Outbox* outbox, ServingMetrics* metrics,
                     const DecodeOptions& options, const std::shared_ptr<KvLandings>& landings,
                     const std::shared_ptr<KvExporter>& exporter, const caf::actor& device,
                     const caf::actor& manager) {
  self->state.ports = std::make_unique<ActorPorts>(self, device, manager);
  self->state.landings = landings;
  self->state.exporter = exporter;
  self->state.core = std::make_unique<DecodeCore>(*clock, *outbox, *self->state.ports,
                                                  landings.get(), *metrics, options);
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
        dispatch(*self->state.core, self->state.refusals, std::move(message).value());
      },
      [self](const KvReplyBatch& batch) {
        self->state.core->on_kv_replies(*batch.replies, batch.stats);
      },
      [self](const DeviceStepDone& done) { self->state.core->on_step_done(*done.result); },
      [self](const LandingClosed& closed) {
        self->state.core->on_landing_closed(closed.landing, closed.blocks);
      },
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

DecodeWorker spawn_decode(caf::actor_system& system, const Clock& clock, wire::Outbox& outbox,
                          ServingMetrics& metrics, DecodeOptions options, const WorkerBulk& bulk,
                          const caf::actor& device, const caf::actor& kv_cache_manager) {
  const auto target = std::make_shared<MailTarget>();
  DecodeWorker worker;
  if (bulk.transport != nullptr) {
    worker.landings = std::make_shared<KvLandings>(*bulk.transport, bulk.kv,
                                                   [target](uint64_t landing, uint32_t blocks) {
                                                     target->send(LandingClosed{landing, blocks});
                                                   });
    worker.exporter = make_exporter(*bulk.transport, bulk.kv, target);
  }
  worker.actor = system.spawn(decode, &clock, &outbox, &metrics, std::move(options),
                              worker.landings, worker.exporter, device, kv_cache_manager);
  target->set(worker.actor);
  return worker;
}

}  // namespace troupe
