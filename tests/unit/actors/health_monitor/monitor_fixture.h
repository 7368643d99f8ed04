#pragma once
#include <string>
#include <utility>
#include <vector>

#include "actors/health_monitor/health_monitor_core.h"
#include "tests/unit/actors/fake_outbox.h"

namespace troupe {

// A monitor of two routers, R and S, on a clock that stands still.
struct MonitorFixture {
  static constexpr const char* kR = "r:7000/router";
  static constexpr const char* kS = "s:7000/router";
  static constexpr const char* kWorker = "w:7000/worker";

  static wire::WorkerStatus worker(const std::string& state = "ready",
                                   const std::string& endpoint = kWorker) {
    wire::WorkerStatus status;
    status.worker = WorkerId{7};
    status.endpoint = endpoint;
    status.role = wire::Role::kDecode;
    status.accepting = state == "ready";
    status.state = state;
    status.incarnation = 11;
    status.requests = 2;
    status.load.blocks_total = 100;
    return status;
  }

  // The router's answer, heard now.
  void hear(size_t router, std::vector<wire::WorkerStatus> workers) {
    bool healthy = false;
    for (const auto& status : workers) healthy = healthy || status.accepting;
    monitor.on_health(router,
                      {healthy, healthy ? "" : "no worker is ready", std::move(workers), 5});
    monitor.check_invariants();
  }

  void wait(Duration by) {
    for (Duration waited{0}; waited < by; waited += limits::kHeartbeatInterval) {
      clock.advance(limits::kHeartbeatInterval);
      monitor.on_tick();
      monitor.check_invariants();
    }
  }

  // "worker w:7000/worker joined" of what has happened since the last call.
  [[nodiscard]] std::vector<std::string> transitions() {
    std::vector<std::string> out;
    for (const Transition& transition : monitor.take_transitions()) {
      out.push_back((transition.node_kind == NodeKind::kRouter ? "router " : "worker ") +
                    transition.endpoint + " " + to_string(transition.kind));
    }
    return out;
  }

  [[nodiscard]] NodeState state(const std::string& endpoint = kWorker) const {
    for (const ObservedWorker& seen : monitor.view().workers) {
      if (seen.status.endpoint == endpoint) return seen.state;
    }
    return NodeState::kUnheard;
  }

  ManualClock clock;
  FakeOutbox outbox;
  HealthMonitorCore monitor{clock, outbox, {{kR, "m:7000/monitor"}, {kS, "m:7000/monitor1"}}};
};

}  // namespace troupe
