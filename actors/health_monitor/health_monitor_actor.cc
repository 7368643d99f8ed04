#include "actors/health_monitor/health_monitor_actor.h"

#include <glog/logging.h>
#include <caf/event_based_actor.hpp>
#include <caf/stateful_actor.hpp>

#include "actors/health_monitor/monitor_page.h"
#include "actors/wire/codec.h"

namespace troupe {
namespace {

using TickAtom = caf::atom_constant<caf::atom("tick")>;

struct MonitorState {
  std::unique_ptr<HealthMonitorCore> core;
};

void log_transitions(HealthMonitorCore& core) {
  for (const Transition& transition : core.take_transitions()) {
    const bool bad = transition.kind == TransitionKind::kLost ||
                     transition.kind == TransitionKind::kStalled ||
                     transition.kind == TransitionKind::kUnable;
    (bad ? LOG(WARNING) : LOG(INFO)) << transition_line(transition);
  }
}

caf::behavior monitor(caf::stateful_actor<MonitorState>* self, const Clock* clock,
                      wire::Outbox* outbox, const Transport* transport, MonitorViewSink* sink,
                      const std::vector<MonitoredRouter>& routers) {
  self->state.core = std::make_unique<HealthMonitorCore>(*clock, *outbox, routers);
  self->send(self, TickAtom::value);
  return {
      [self](uint64_t router, const wire::Frame& frame) {
        auto message = wire::decode(*frame.words);
        if (!message.ok()) {
          LOG(WARNING) << "monitor: " << message.status().message();
          return;
        }
        if (auto* health = std::get_if<wire::Health>(&message.value())) {
          self->state.core->on_health(router, std::move(*health));
          log_transitions(*self->state.core);
          return;
        }
        LOG(WARNING) << "monitor: dropped a message that is not for a monitor";
      },
      [self, transport, sink](TickAtom) {
        self->delayed_send(self, limits::kHeartbeatInterval, TickAtom::value);
        HealthMonitorCore& core = *self->state.core;
        core.on_peers(transport->peers());
        core.on_tick();
        log_transitions(core);
        sink->on_view(core.view());
      },
  };
}

}  // namespace

caf::actor spawn_health_monitor(caf::actor_system& system, const Clock& clock, wire::Outbox& outbox,
                                const Transport& transport, MonitorViewSink& sink,
                                std::vector<MonitoredRouter> routers) {
  return system.spawn(monitor, &clock, &outbox, &transport, &sink, std::move(routers));
}

void RouterAnswerInbox::on_message(MessageWords words) {
  caf::anon_send(monitor_, router_,
                 wire::Frame{std::make_shared<const MessageWords>(std::move(words))});
}

}  // namespace troupe
