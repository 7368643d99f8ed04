#pragma once
#include <memory>

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>

#include "actors/health_monitor/health_monitor_core.h"
#include "actors/wire/inbox_actor.h"
#include "troupe/transport.h"

namespace troupe {

// Takes the newest view after each tick; on the actor's thread.
class MonitorViewSink {
 public:
  virtual ~MonitorViewSink() = default;
  virtual void on_view(MonitorView view) = 0;
};

// Spawns the monitor. It ticks by itself, logs each transition as one line, reads the transport's
// peers with each tick, and ends on an exit message. All references must outlive the actor.
[[nodiscard]] caf::actor spawn_health_monitor(caf::actor_system& system, const Clock& clock,
                                              wire::Outbox& outbox, const Transport& transport,
                                              MonitorViewSink& sink,
                                              std::vector<MonitoredRouter> routers);

// Gives what arrives to the monitor as the answer of one router. Holds the actor alive.
class RouterAnswerInbox final : public MessageReceiver {
 public:
  RouterAnswerInbox(caf::actor monitor, size_t router)
      : monitor_(std::move(monitor)), router_(router) {}
  void on_message(MessageWords words) override;

 private:
  caf::actor monitor_;
  const uint64_t router_;
};

}  // namespace troupe
