#pragma once
#include <caf/actor.hpp>
#include <caf/actor_system.hpp>

#include "actors/router/router_core.h"

namespace troupe {

// Spawns the router. It takes wire::Frame mail, ticks by itself, and ends on an exit message. All
// references must outlive the actor.
[[nodiscard]] caf::actor spawn_router(caf::actor_system& system, const Clock& clock,
                                      wire::Outbox& outbox, const RoutingPolicy& policy,
                                      RouterOptions options);

}  // namespace troupe
