#pragma once
#include <caf/actor.hpp>
#include <caf/actor_system.hpp>

#include "actors/decode/decode_core.h"

namespace troupe {

// Spawns the decode worker. It takes wire::Frame mail, the replies of its device and its KV-cache
// manager, ticks by itself, and ends on an exit message. The three are linked: when one dies, so do
// the others, and the router misses their heartbeats. All references must outlive the actor.
[[nodiscard]] caf::actor spawn_decode(caf::actor_system& system, const Clock& clock,
                                      wire::Outbox& outbox, ServingMetrics& metrics,
                                      DecodeOptions options, const caf::actor& device,
                                      const caf::actor& kv_cache_manager);

}  // namespace troupe
