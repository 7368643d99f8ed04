#pragma once
// The prefill worker: computes prompts for decode workers. Its orders stand in export_orders.h;
// here they meet the device and the routers. Plain state and one function per message; the shell is
// prefill_actor.h.

#include <string_view>
#include <vector>

#include "actors/wire/outbox.h"
#include "actors/worker/export_orders.h"
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
  KvExtent kv;
};

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
  void act();
  void do_actions(Actions actions);

  WorkerPorts& ports_;
  ServingMetrics& metrics_;
  const PrefillOptions options_;
  Scheduler scheduler_;
  ExportOrders orders_;
  Heartbeats heartbeats_;
  StepWatch watch_;
  KvStats kv_stats_;
  bool draining_ = false;
};

}  // namespace troupe
