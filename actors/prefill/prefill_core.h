#pragma once
// The prefill worker: computes prompts for decode workers. An order names the tokens and a landing
// over blocks that the decode worker has reserved; the scheduler turns orders into steps, and each
// step carries the blocks that it completes to their landings, layer by layer. Nothing is sampled
// here: the decode worker computes the prompt's last token itself.
// Plain state and one function per message; the shell is prefill_actor.h.

#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "actors/wire/outbox.h"
#include "actors/worker/heartbeats.h"
#include "actors/worker/step_watch.h"
#include "actors/worker/worker_ports.h"
#include "base/clock.h"
#include "base/metrics/serving_metrics.h"
#include "engine/schedule/scheduler.h"

namespace troupe {

struct PrefillOptions {
  WorkerIdentity identity;
  SchedulerOptions scheduler;
  uint32_t kv_layers = 0;  // of the KV memory; orders for another shape are refused
  uint64_t kv_block_bytes = 0;
};

// Invariants: an order is known from its arrival until its decode worker has been told how it ended
// or does not want to know; its blocks stay until nothing reads them, also when it is given up.
class PrefillCore {
 public:
  // All references must outlive the core.
  PrefillCore(const Clock& clock, wire::Outbox& outbox, WorkerPorts& ports, ServingMetrics& metrics,
              PrefillOptions options);

  void on_reserved(wire::Reserved message);
  void on_released(const wire::Released& message);
  void on_kv_replies(const std::vector<KvReply>& replies, const KvStats& stats);
  // A failed result means that the device is gone: all orders end with its status, and the worker
  // tells the routers that it is stalled from then on.
  void on_step_done(Result<StepResult> result);
  // One KvExport of a plan has arrived, or will not: its blocks are read no more.
  void on_exported(uint64_t landing, const Status& status);
  // The node is lost, and with it whoever wanted what is computed for it.
  void on_peer_lost(std::string_view node);
  // Takes nothing new from now on; what runs goes on.
  void drain();
  // Tells the routers that this was the last of it. After drain(), when idle or at a deadline.
  void leave() { heartbeats_.leave(); }
  // Every kHeartbeatInterval.
  void on_tick();

  [[nodiscard]] bool idle() const { return scheduler_.idle() && orders_.empty(); }
  void check_invariants() const;

 private:
  struct Order {
    std::string reply_to;
    std::shared_ptr<const KvDestination> destination;
    SequenceId sequence;
    uint32_t tokens = 0;
    uint32_t first_block = 0;
    uint32_t next_block = 0;  // the first that has not been exported
    uint32_t cached_tokens = 0;
    uint32_t exports_in_flight = 0;
    bool computed = false;
    // No longer wanted, or it cannot be done; goes when nothing reads its blocks.
    bool given_up = false;
    TimePoint deadline{}, compute_started{}, compute_finished{};
  };
  using Orders = std::map<uint64_t, Order>;  // by landing

  void act();
  void do_actions(Actions actions);
  void add_exports(StepPlan& plan);
  [[nodiscard]] Status check(const wire::Reserved& message) const;
  void refuse(const wire::Reserved& message, Status status);
  void take_emission(const Emission& emission);
  // Tells the decode worker, once, and gives the order up.
  void fail(Orders::iterator order, Status status);
  void give_up(Orders::iterator order);
  void finish_if_done(Orders::iterator order);

  const Clock& clock_;
  wire::Outbox& outbox_;
  WorkerPorts& ports_;
  ServingMetrics& metrics_;
  const PrefillOptions options_;
  const std::shared_ptr<const SamplingParams> params_;  // of every sequence: nothing is sampled
  Scheduler scheduler_;
  Heartbeats heartbeats_;
  StepWatch watch_;
  KvStats kv_stats_;
  bool draining_ = false;
  Orders orders_;
  std::unordered_map<SequenceId, uint64_t> landing_of_;
  uint64_t next_sequence_ = 1;
};

}  // namespace troupe
