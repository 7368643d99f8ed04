#pragma once
// The health monitor: asks every router what it knows, and keeps who came, went and came back.
// Plain state and one function per message; the shell (health_monitor_actor.h) feeds it.

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/health_monitor/limits.h"
#include "actors/health_monitor/monitor_view.h"
#include "actors/wire/outbox.h"
#include "base/clock.h"
#include "base/limits.h"

namespace troupe {

// One router, and where the monitor takes that router's answers: an endpoint for each, since a
// message does not say who sent it.
struct MonitoredRouter {
  std::string endpoint;   // "10.0.0.1:7000/router"
  std::string answer_at;  // "10.0.0.9:7100/monitor", as others reach it
};

// Invariants: a node's state changes by a transition, which is counted once; the transitions of a
// kind are as many as those of its nodes, forgotten ones included.
class HealthMonitorCore {
 public:
  // All references must outlive the core. At least one and at most kObservedRoutersMax routers.
  HealthMonitorCore(const Clock& clock, wire::Outbox& outbox, std::vector<MonitoredRouter> routers);

  // From the router at that index of the constructor's list.
  void on_health(size_t router, wire::Health message);
  // What the node's own transport measured. A router whose connection is broken is lost at once.
  void on_peers(std::vector<PeerState> peers);
  // Every kHeartbeatInterval: asks all routers, and finds those that are silent.
  void on_tick();

  [[nodiscard]] MonitorView view() const;
  // Those since the last call, oldest first, at most kTransitionsKept; for the log.
  [[nodiscard]] std::vector<Transition> take_transitions();
  // Asserts the invariants above.
  void check_invariants() const;

 private:
  struct Router {
    MonitoredRouter names;
    ObservedRouter seen;
    TimePoint heard{};  // its latest answer
    wire::Health health;
  };
  // A worker in one router's answer, with when the worker itself was heard.
  struct Sighting {
    const wire::WorkerStatus* status = nullptr;
    TimePoint heard{};
    uint32_t requests = 0;  // of all routers
  };

  void change(ObservedRouter& router, NodeState state, const std::string& detail);
  void change(ObservedWorker& worker, NodeState state, const std::string& detail);
  void lose(Router& router, const std::string& why);
  void note(NodeKind node_kind, TransitionKind kind, const std::string& endpoint,
            const std::string& detail);
  void see(const Sighting& sighting);
  void miss(ObservedWorker& worker);
  // Brings the workers in line with what the routers that are heard say.
  void merge();
  void forget_gone();
  [[nodiscard]] bool informed() const;

  const Clock& clock_;
  wire::Outbox& outbox_;
  TimePoint last_tick_;
  std::vector<Router> routers_;
  std::map<std::string, ObservedWorker> workers_;  // by endpoint
  std::vector<PeerState> peers_;
  std::array<std::array<uint64_t, kTransitionKinds>, 2> counts_{};
  uint32_t left_out_ = 0;   // workers beyond the limit, at the last merge
  uint64_t forgotten_ = 0;  // transitions of workers that are kept no more
  std::deque<Transition> recent_;
  size_t untaken_ = 0;  // of recent_, at its end
};

}  // namespace troupe
