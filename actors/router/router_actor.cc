#include "actors/router/router_actor.h"

#include <glog/logging.h>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include "actors/wire/codec.h"
#include "actors/wire/inbox_actor.h"

namespace troupe {
namespace {

using TickAtom = caf::atom_constant<caf::atom("tick")>;

struct RouterState {
  std::unique_ptr<RouterCore> core;
};

struct Dispatch {
  RouterCore& core;
  void operator()(wire::Accepted& m) { core.on_accepted(std::move(m)); }
  void operator()(wire::Cancelled& m) { core.on_cancelled(m); }
  void operator()(wire::Finished& m) { core.on_finished(m); }
  void operator()(wire::Heartbeat& m) { core.on_heartbeat(m); }
  void operator()(wire::Observe& m) { core.on_observe(m); }
  // A peer's mistake, harmless.
  template <class Other>
  void operator()(Other& /*message*/) {
    LOG(WARNING) << "router: dropped a message that is not for a router";
  }
};

caf::behavior router(caf::stateful_actor<RouterState>* self, const Clock* clock,
                     wire::Outbox* outbox, const RoutingPolicy* policy,
                     const RouterOptions& options) {
  self->state.core = std::make_unique<RouterCore>(*clock, *outbox, *policy, options);
  self->delayed_send(self, limits::kHeartbeatInterval, TickAtom::value);
  return {
      [self](const wire::Frame& frame) {
        auto message = wire::decode(*frame.words);
        if (!message.ok()) {
          LOG(WARNING) << "router: " << message.status().message();
          return;
        }
        wire::Message taken = std::move(message).value();
        std::visit(Dispatch{*self->state.core}, taken);
      },
      [self](const wire::PeerLost& lost) { self->state.core->on_peer_lost(lost.node, lost.why); },
      [self](TickAtom) {
        self->delayed_send(self, limits::kHeartbeatInterval, TickAtom::value);
        self->state.core->on_tick();
      },
  };
}

}  // namespace

caf::actor spawn_router(caf::actor_system& system, const Clock& clock, wire::Outbox& outbox,
                        const RoutingPolicy& policy, RouterOptions options) {
  return system.spawn(router, &clock, &outbox, &policy, std::move(options));
}

}  // namespace troupe
