#include "actors/kv_cache_manager/kv_cache_manager_actor.h"

#include <algorithm>
#include <optional>

#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

namespace troupe {
namespace {

struct ManagerState {
  KvStats reported;  // counters are increments of the snapshots
  std::optional<ServingMetrics::KvGauges> window_gauges;
};

double usage(uint32_t held, uint32_t total) {
  return total == 0 ? 0.0 : static_cast<double>(held) / total;
}

void report(const KvStats& now, ManagerState& state, ServingMetrics& metrics) {
  KvStats& before = state.reported;
  const uint32_t held = now.blocks_computing + now.blocks_leased + now.blocks_held;
  metrics.kv_blocks_total.Set(now.blocks_total);
  metrics.kv_blocks_free.Set(now.blocks_free);
  metrics.kv_blocks_cached.Set(now.blocks_cached);
  metrics.kv_blocks_held.Set(held);
  metrics.kv_blocks_leased.Set(now.blocks_leased);
  double used = usage(held, now.blocks_total);
  if (now.window.total > 0) {
    const KvBlockCounts& window = now.window;
    const uint32_t window_held = window.computing + window.leased + window.held;
    if (!state.window_gauges) state.window_gauges.emplace(metrics.window_kv());
    state.window_gauges->total.Set(window.total);
    state.window_gauges->free.Set(window.free);
    state.window_gauges->cached.Set(window.cached);
    state.window_gauges->held.Set(window_held);
    state.window_gauges->leased.Set(window.leased);
    used = std::max(used, usage(window_held, window.total));  // whoever is short first decides
  }
  metrics.kv_cache_usage.Set(used);
  metrics.prefix_cache_queries.Increment(
      static_cast<double>(now.prefix_query_tokens - before.prefix_query_tokens));
  metrics.prefix_cache_hits.Increment(
      static_cast<double>(now.prefix_hit_tokens - before.prefix_hit_tokens));
  before = now;
}

caf::behavior manager(caf::stateful_actor<ManagerState>* self, KvCacheManagerCore* core,
                      ServingMetrics* metrics) {
  report(core->stats(), self->state, *metrics);
  return {
      [self, core, metrics](const KvRequestBatch& batch) {
        std::vector<KvReply> replies;
        core->on_requests(*batch.requests, replies);
        const KvStats stats = core->stats();
        report(stats, self->state, *metrics);
        self->send(
            caf::actor_cast<caf::actor>(self->current_sender()),
            KvReplyBatch{std::make_shared<const std::vector<KvReply>>(std::move(replies)), stats});
        core->check_when_idle();  // nobody waits for it any more
      },
  };
}

}  // namespace

caf::actor spawn_kv_cache_manager(caf::actor_system& system, KvCacheManagerCore& core,
                                  ServingMetrics& metrics) {
  return system.spawn(manager, &core, &metrics);
}

}  // namespace troupe
