#pragma once
#include <caf/actor.hpp>
#include <caf/actor_system.hpp>

#include <memory>

#include "actors/decode/decode_core.h"
#include "actors/decode/grammar_thread.h"
#include "actors/decode/kv_landings.h"
#include "actors/worker/kv_exporter.h"
#include "troupe/transport.h"

namespace troupe {

// The bulk lane of a worker, as far as it has one.
struct WorkerBulk {
  Transport* transport = nullptr;  // null: prompts are computed here only
  WorkerKv kv;                     // registered there
};

struct DecodeWorker {
  caf::actor actor;
  // Both null without a bulk lane. Keep them until the transport has ended: they may still be
  // called. The exporter is to be made the executor's layer listener before the worker gets mail.
  std::shared_ptr<KvLandings> landings;
  std::shared_ptr<KvExporter> exporter;
};

// Spawns the decode worker. It takes wire::Frame and wire::PeerLost mail, the replies of its device
// and its KV-cache manager and the atoms of mail_actor.h, ticks by itself, and ends on an exit
// message. The three are linked: when one dies, so do the others, and the routers miss their
// heartbeats. `make_vocabulary` (empty: requests with a grammar are refused) is called when the
// first grammar comes, on a thread of the worker. All references must outlive the actor.
[[nodiscard]] DecodeWorker spawn_decode(caf::actor_system& system, const Clock& clock,
                                        wire::Outbox& outbox, ServingMetrics& metrics,
                                        DecodeOptions options, const WorkerBulk& bulk,
                                        const GrammarThread::MakeVocabulary& make_vocabulary,
                                        const caf::actor& device,
                                        const caf::actor& kv_cache_manager);

}  // namespace troupe
