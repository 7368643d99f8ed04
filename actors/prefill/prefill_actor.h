#pragma once
#include <caf/actor.hpp>
#include <caf/actor_system.hpp>

#include <memory>

#include "actors/prefill/prefill_core.h"
#include "actors/worker/kv_exporter.h"

namespace troupe {

struct PrefillWorker {
  caf::actor actor;
  // To be made the executor's layer listener before the worker gets its first order; keep it until
  // the transport has ended: it may still be called.
  std::shared_ptr<KvExporter> exporter;
};

// Spawns the prefill worker. It takes wire::Frame and wire::PeerLost mail, the replies of its
// device and its KV-cache manager and the atoms of mail_actor.h, ticks by itself, and ends on an
// exit message. The three are linked: when one dies, so do the others, and the routers miss their
// heartbeats. All references must outlive the actor; `kv` is registered at the transport.
[[nodiscard]] PrefillWorker spawn_prefill(caf::actor_system& system, const Clock& clock,
                                          wire::Outbox& outbox, ServingMetrics& metrics,
                                          PrefillOptions options, Transport& transport,
                                          const WorkerKv& kv, const caf::actor& device,
                                          const caf::actor& kv_cache_manager);

}  // namespace troupe
