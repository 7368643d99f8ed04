#pragma once
// The decode worker: takes routed requests, lets its scheduler turn them into steps of the device,
// and sends each step's tokens to the gateways. Prompts are computed here too (role `mixed`), or by
// the prefill worker that the router names: then their KV is imported into blocks reserved for it,
// and what follows is the same as after a hit in the prefix cache.
// Plain state and one function per message; the shell is decode_actor.h.

#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/decode/grammar_port.h"
#include "actors/decode/imports.h"
#include "actors/decode/landing_port.h"
#include "actors/wire/outbox.h"
#include "actors/worker/export_orders.h"
#include "actors/worker/heartbeats.h"
#include "actors/worker/step_watch.h"
#include "actors/worker/worker_ports.h"
#include "base/clock.h"
#include "base/metrics/serving_metrics.h"
#include "engine/grammar/grammar_compiler.h"
#include "engine/schedule/scheduler.h"

namespace troupe {

struct DecodeOptions {
  WorkerIdentity identity;
  SchedulerOptions scheduler;
  // Fewer uncached prompt tokens than this are computed here even if a prefill worker is named: the
  // exchange with it takes longer.
  uint32_t import_tokens_min = 64;
  KvExtent kv;  // of the KV memory, for what is imported and exported
};

// Invariants: a request is known while one of its sequences is; its router hears `finished` exactly
// once for each (request, attempt) that was routed here; a sequence whose blocks are being imported
// has one entry in `imports_`, which outlives the sequence's request when that is cancelled; a
// request is held, with its ticket in `tickets_`, until its grammar is compiled, and until then its
// sequences are not the scheduler's.
class DecodeCore {
 public:
  // All references must outlive the core. `landings` null: nothing is imported; `grammars` null:
  // requests with a grammar are refused.
  DecodeCore(const Clock& clock, wire::Outbox& outbox, WorkerPorts& ports, LandingPort* landings,
             ServingMetrics& metrics, DecodeOptions options, GrammarPort* grammars = nullptr);

  void on_routed(wire::Routed message);
  void on_cancelled(const wire::Cancelled& message);
  // Tickets that are not known, any more, are ignored.
  void on_grammar_compiled(uint64_t ticket,
                           const Result<std::shared_ptr<const CompiledGrammar>>& grammar);
  void on_kv_replies(const std::vector<KvReply>& replies, const KvStats& stats);
  // A failed result means that the device is gone: all requests end with its status, and the worker
  // tells the router that it is stalled from then on.
  void on_step_done(Result<StepResult> result);
  // Another decode worker wants a prompt that this one is thought to hold.
  void on_reserved(wire::Reserved message);
  void on_released(const wire::Released& message);
  // One KvExport of a plan has arrived, or will not: its blocks are read no more.
  void on_exported(uint64_t landing, const Status& status);
  // The prefill worker's parts have all been acknowledged, or it gave up.
  void on_prefilled(const wire::Prefilled& message);
  // Nothing is written there any more; its first `blocks` blocks stand.
  void on_landing_closed(uint64_t landing, uint32_t blocks);
  // The node is lost: what it was computing for us is computed here, and what its gateway asked for
  // ends.
  void on_peer_lost(std::string_view node);
  // Takes nothing new from now on; what runs goes on.
  void drain();
  // Tells the routers that this was the last of it. After drain(), when idle or at a deadline.
  void leave() { heartbeats_.leave(); }
  // Every kHeartbeatInterval.
  void on_tick();

  [[nodiscard]] bool idle() const {
    return scheduler_.idle() && requests_.empty() && imports_.empty() && orders_.empty();
  }
  void check_invariants() const;

 private:
  struct Request {
    uint32_t attempt = 0;
    std::string gateway;
    std::string router;
    std::string prefill;  // endpoint, or empty
    std::chrono::milliseconds prefill_wait{0};
    std::shared_ptr<const std::vector<TokenId>> prompt;
    std::string cache_salt;
    std::vector<SequenceId> open;    // its sequences that have not ended
    std::vector<SequenceSpec> held;  // those that the scheduler does not know yet
    uint64_t ticket = 0;             // of the grammar that it waits for, or 0
    TimePoint routed{};
  };
  struct Sequence {
    RequestId request;
    uint32_t tokens = 0;  // emitted so far
    uint32_t scores = 0;
    uint32_t prompt_tokens = 0;
    uint32_t cached_tokens = 0;  // of the prompt, at its first reserve
    bool reserved = false;
    std::optional<TimePoint> prefilled, moved;  // of an import that came whole
    std::vector<wire::StopTime> stops;          // passed since the last emission
    Duration compute{0};                        // of devices, since the last emission
  };
  using Outgoing = std::map<std::string, wire::Emitted>;  // by gateway

  [[nodiscard]] Status hold(const wire::Routed& message, Request& request,
                            wire::Sequence& sequence);
  // Has the request's grammar compiled, if it has one, or admits it at once.
  void start_request(RequestId id);
  void admit(RequestId id, const CompiledGrammar* grammar);
  [[nodiscard]] Status add_sequence(SequenceSpec spec, const CompiledGrammar* grammar);
  // Ends the request by an error of one of its sequences.
  void fail_request(RequestId id, SequenceId sequence, const Status& status);
  void fail_held(const Status& status);
  [[nodiscard]] uint32_t held_sequences() const;
  void act();
  void do_actions(Actions actions);
  [[nodiscard]] uint32_t import_tokens_min(const wire::Routed& message,
                                           const wire::Sequence& sequence) const;
  void start_import(const Import& import);
  [[nodiscard]] Duration import_patience(const Request& request, uint32_t tokens) const;
  void close_import(OngoingImport& import);
  void give_up_import(OngoingImport& import);
  template <class Matches>
  void drop_requests_where(Matches&& matches);
  void emit(std::vector<Emission> emissions);
  void add_emission(Emission&& emission, Outgoing& outgoing);
  [[nodiscard]] static wire::End end_of(const Sequence& sequence, const Emission& emission);
  void refuse(const Request& request, RequestId id, SequenceId sequence, const Status& status);
  void forget_sequence(SequenceId id);
  void drop_request(RequestId id);
  void report_gauges();

  const Clock& clock_;
  wire::Outbox& outbox_;
  WorkerPorts& ports_;
  LandingPort* const landings_;
  ServingMetrics& metrics_;
  const DecodeOptions options_;
  Scheduler scheduler_;
  std::unordered_map<RequestId, Request> requests_;
  std::unordered_map<SequenceId, Sequence> sequences_;
  GrammarPort* const grammars_;
  std::map<uint64_t, RequestId> tickets_;  // of requests that are held
  uint64_t next_ticket_ = 1;
  ImportTable imports_;
  ExportOrders orders_;
  // Requests that have ended, and their routers, to be told at the end of the turn.
  std::vector<std::pair<std::string, wire::Finished>> finished_;
  uint32_t next_epoch_ = 1;  // of an import; part of its landing's label
  Heartbeats heartbeats_;
  StepWatch watch_;
  KvStats kv_stats_;
  bool draining_ = false;
  uint64_t step_number_ = 0;  // of the latest step that came back, and its stamps
  TimePoint device_started_{}, device_finished_{};
  SchedulerStats reported_;  // what the counters have been told of
};

}  // namespace troupe
