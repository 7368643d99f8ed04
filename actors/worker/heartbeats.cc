#include "actors/worker/heartbeats.h"

#include <utility>

#include "base/assert.h"

namespace troupe {

Heartbeats::Heartbeats(wire::Outbox& outbox, WorkerIdentity identity)
    : outbox_(outbox), identity_(std::move(identity)) {
  TROUPE_ASSERT(identity_.incarnation != 0);
}

void Heartbeats::send(const StepWatch& watch, const wire::Load& load, bool draining) {
  if (left_) return;
  const wire::Heartbeat heartbeat{
      identity_.worker,
      identity_.incarnation,
      watch.stalled(),
      std::chrono::duration_cast<std::chrono::milliseconds>(watch.age()),
      identity_.endpoint,
      identity_.role,
      draining,
      false,
      identity_.model,
      identity_.context_tokens,
      load,
      identity_.model_name,
      identity_.kv_type};
  for (const std::string& router : identity_.routers) {
    [[maybe_unused]] const Status sent = outbox_.send(router, heartbeat);
  }
}

void Heartbeats::leave() {
  if (std::exchange(left_, true)) return;
  wire::Heartbeat last;
  last.worker = identity_.worker;
  last.incarnation = identity_.incarnation;
  last.endpoint = identity_.endpoint;
  last.role = identity_.role;
  last.model = identity_.model;
  last.model_name = identity_.model_name;
  last.kv_type = identity_.kv_type;
  last.context_tokens = identity_.context_tokens;
  last.draining = true;
  last.left = true;
  for (const std::string& router : identity_.routers) {
    [[maybe_unused]] const Status sent = outbox_.send(router, last);
  }
}

wire::Load load_of(const Scheduler& scheduler, const StepWatch& watch, const KvStats& kv) {
  const SchedulerStats stats = scheduler.stats();
  wire::Load load;
  load.running = stats.running;
  load.waiting = stats.waiting;
  load.queued_tokens = scheduler.queued_tokens();
  load.blocks_total = kv.blocks_total;
  load.blocks_used = kv.blocks_total - kv.blocks_free - kv.blocks_cached;
  load.seconds_per_token = watch.seconds_per_token();
  load.seconds_per_step = watch.seconds_per_step();
  return load;
}

}  // namespace troupe
