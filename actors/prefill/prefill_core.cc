#include "actors/prefill/prefill_core.h"

#include <utility>

#include "base/assert.h"

namespace troupe {

PrefillCore::PrefillCore(const Clock& clock, wire::Outbox& outbox, WorkerPorts& ports,
                         ServingMetrics& metrics, PrefillOptions options)
    : ports_(ports),
      metrics_(metrics),
      options_(std::move(options)),
      scheduler_(options_.scheduler),
      orders_(clock, outbox, scheduler_, metrics, options_.kv),
      heartbeats_(outbox, options_.identity),
      watch_(clock) {
  kv_stats_.blocks_total = kv_stats_.blocks_free = options_.scheduler.blocks_total;
}

void PrefillCore::on_reserved(wire::Reserved message) {
  Status unable = watch_.failed();
  if (unable.ok() && draining_) {
    unable = {StatusCode::kUnavailable, "this prefill worker is about to leave"};
  }
  orders_.on_reserved(std::move(message), unable);
  act();
}

void PrefillCore::on_released(const wire::Released& message) {
  orders_.on_released(message);
  act();
}

void PrefillCore::on_kv_replies(const std::vector<KvReply>& replies, const KvStats& stats) {
  kv_stats_ = stats;
  if (replies.empty()) return;
  for (const KvReply& reply : replies) {
    if (const auto* reserved = std::get_if<KvReserved>(&reply)) orders_.on_kv_reserved(*reserved);
    scheduler_.on_kv_reply(reply);
  }
  act();
}

void PrefillCore::on_step_done(Result<StepResult> result) {
  if (result.ok()) {
    watch_.on_done(result.value());
    orders_.on_step_done(result.value());
    scheduler_.on_step_result(std::move(result).value());
  } else {
    watch_.on_failed({StatusCode::kUnavailable,
                      "the prefill worker's device failed: " + result.status().message()});
    scheduler_.fail_all(watch_.failed());
    orders_.on_device_failed();
  }
  act();
}

void PrefillCore::on_exported(uint64_t landing, const Status& status) {
  orders_.on_exported(landing, status);
  act();
}

void PrefillCore::on_peer_lost(std::string_view node) {
  orders_.on_peer_lost(node);
  act();
}

void PrefillCore::drain() {
  draining_ = true;
  on_tick();  // the routers hear of it now
}

void PrefillCore::on_tick() {
  watch_.on_tick();
  heartbeats_.send(watch_, load_of(scheduler_, watch_, kv_stats_), draining_);
  orders_.on_tick();
  act();
}

// Does what follows from the events that came in, and from that.
void PrefillCore::act() {
  for (Actions actions = scheduler_.take_actions(); !actions.empty();
       actions = scheduler_.take_actions()) {
    do_actions(std::move(actions));
  }
  const SchedulerStats stats = scheduler_.stats();
  metrics_.requests_running.Set(stats.running);
  metrics_.requests_waiting.Set(stats.waiting);
}

void PrefillCore::do_actions(Actions actions) {
  TROUPE_ASSERT(actions.imports.empty(), actions.imports.size());
  if (!actions.kv.empty()) ports_.ask_kv(std::move(actions.kv));
  if (actions.step) {
    metrics_.iteration_tokens.Observe(tokens_of(*actions.step));
    orders_.add_exports(*actions.step);
    watch_.on_submitted(*actions.step);
    ports_.submit(std::move(*actions.step));
  }
  for (const Emission& emission : actions.emissions) orders_.on_emission(emission);
}

void PrefillCore::check_invariants() const {
  scheduler_.check_invariants();
  orders_.check_invariants();
}

}  // namespace troupe
