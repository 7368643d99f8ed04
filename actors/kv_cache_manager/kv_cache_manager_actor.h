#pragma once
#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/allowed_unsafe_message_type.hpp>

#include <memory>

#include "actors/kv_cache_manager/kv_cache_manager_core.h"
#include "base/metrics/serving_metrics.h"

namespace troupe {

// decode or prefill -> kv_cache_manager: what one turn of the scheduler asks.
struct KvRequestBatch {
  std::shared_ptr<const std::vector<KvRequest>> requests;
};

// kv_cache_manager -> decode or prefill, one for each KvRequestBatch: what follows from it, which
// may answer earlier ones or be nothing.
struct KvReplyBatch {
  std::shared_ptr<const std::vector<KvReply>> replies;
  KvStats stats;
};

// Spawns the manager. The core and the metrics must outlive it.
[[nodiscard]] caf::actor spawn_kv_cache_manager(caf::actor_system& system, KvCacheManagerCore& core,
                                                ServingMetrics& metrics);

}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::KvRequestBatch)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::KvReplyBatch)
