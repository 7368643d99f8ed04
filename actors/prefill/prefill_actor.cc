#include "actors/prefill/prefill_actor.h"

#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include "actors/worker/export_actor.h"
#include "actors/worker/ports_actor.h"
#include "actors/worker/shell_actor.h"

namespace troupe {
namespace {

struct PrefillState {
  RefusalLog refusals;
  std::unique_ptr<ActorPorts> ports;
  std::shared_ptr<KvExporter> exporter;
  std::unique_ptr<PrefillCore> core;
};
using Self = caf::stateful_actor<PrefillState>;

bool dispatch(PrefillCore& core, wire::Message message) {
  if (auto* reserved = std::get_if<wire::Reserved>(&message)) {
    core.on_reserved(std::move(*reserved));
  } else if (auto* released = std::get_if<wire::Released>(&message)) {
    core.on_released(*released);
  } else {
    return false;
  }
  return true;
}

caf::behavior prefill(Self* self, const Clock* clock, wire::Outbox* outbox, ServingMetrics* metrics,
                      const PrefillOptions& options, const std::shared_ptr<KvExporter>& exporter,
                      const caf::actor& device, const caf::actor& manager) {
  self->state.ports = std::make_unique<ActorPorts>(self, device, manager);
  self->state.exporter = exporter;
  self->state.core =
      std::make_unique<PrefillCore>(*clock, *outbox, *self->state.ports, *metrics, options);
  return worker_shell(self, "prefill", dispatch, device, manager);
}

}  // namespace

PrefillWorker spawn_prefill(caf::actor_system& system, const Clock& clock, wire::Outbox& outbox,
                            ServingMetrics& metrics, PrefillOptions options, Transport& transport,
                            const WorkerKv& kv, const caf::actor& device,
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
