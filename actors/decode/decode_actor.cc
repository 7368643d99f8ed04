#include "actors/decode/decode_actor.h"

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include "actors/worker/export_actor.h"
#include "actors/worker/ports_actor.h"
#include "actors/worker/shell_actor.h"

namespace troupe {

// The transport's thread -> decode.
struct LandingClosed {
  uint64_t landing = 0;
  uint32_t blocks = 0;
};

// The grammar thread -> decode.
struct GrammarCompiled {
  uint64_t ticket = 0;
  std::shared_ptr<const Result<GrammarThread::Grammar>> grammar;
};

}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::LandingClosed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::GrammarCompiled)

namespace troupe {
namespace {

struct DecodeState {
  RefusalLog refusals;
  std::unique_ptr<ActorPorts> ports;
  std::shared_ptr<KvLandings> landings;
  std::shared_ptr<KvExporter> exporter;
  std::shared_ptr<GrammarThread> grammars;
  std::unique_ptr<DecodeCore> core;
};
using Self = caf::stateful_actor<DecodeState>;

bool dispatch(DecodeCore& core, wire::Message message) {
  if (auto* routed = std::get_if<wire::Routed>(&message)) {
    core.on_routed(std::move(*routed));
  } else if (auto* cancelled = std::get_if<wire::Cancelled>(&message)) {
    core.on_cancelled(*cancelled);
  } else if (auto* prefilled = std::get_if<wire::Prefilled>(&message)) {
    core.on_prefilled(*prefilled);
  } else if (auto* reserved = std::get_if<wire::Reserved>(&message)) {
    core.on_reserved(std::move(*reserved));
  } else if (auto* released = std::get_if<wire::Released>(&message)) {
    core.on_released(*released);
  } else {
    return false;
  }
  return true;
}

caf::behavior decode(Self* self, const Clock* clock, wire::Outbox* outbox, ServingMetrics* metrics,
                     const DecodeOptions& options, const std::shared_ptr<KvLandings>& landings,
                     const std::shared_ptr<KvExporter>& exporter,
                     const std::shared_ptr<GrammarThread>& grammars, const caf::actor& device,
                     const caf::actor& manager) {
  self->state.ports = std::make_unique<ActorPorts>(self, device, manager);
  self->state.landings = landings;
  self->state.exporter = exporter;
  self->state.grammars = grammars;
  self->state.core = std::make_unique<DecodeCore>(
      *clock, *outbox, *self->state.ports, landings.get(), *metrics, options, grammars.get());
  return worker_shell(self, "decode", dispatch, device, manager,
                      {[self](const LandingClosed& closed) {
                         self->state.core->on_landing_closed(closed.landing, closed.blocks);
                       },
                       [self](const GrammarCompiled& compiled) {
                         self->state.core->on_grammar_compiled(compiled.ticket, *compiled.grammar);
                       }});
}

}  // namespace

DecodeWorker spawn_decode(caf::actor_system& system, const Clock& clock, wire::Outbox& outbox,
                          ServingMetrics& metrics, DecodeOptions options, const WorkerBulk& bulk,
                          const GrammarThread::MakeVocabulary& make_vocabulary,
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
  std::shared_ptr<GrammarThread> grammars;
  if (make_vocabulary) {
    grammars = std::make_shared<GrammarThread>(
        clock, make_vocabulary, [target](uint64_t ticket, Result<GrammarThread::Grammar> grammar) {
          target->send(GrammarCompiled{
              ticket, std::make_shared<const Result<GrammarThread::Grammar>>(std::move(grammar))});
        });
  }
  worker.actor = system.spawn(decode, &clock, &outbox, &metrics, std::move(options),
                              worker.landings, worker.exporter, grammars, device, kv_cache_manager);
  target->set(worker.actor);
  return worker;
}

}  // namespace troupe
