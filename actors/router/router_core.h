#pragma once
// The router: admits requests, places them on workers, and knows which workers live. Plain state
// and one function per message; the shell (router_actor.h) feeds it and delivers what it sends.

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/wire/outbox.h"
#include "base/clock.h"
#include "base/limits.h"
#include "policies/routing/routing_policy.h"

namespace troupe {

struct RouterOptions {
  uint32_t requests_in_flight_max = limits::kRequestsInFlightDefault;
  std::vector<std::pair<WorkerId, std::string>> workers;  // with their endpoints
  std::vector<std::string> gateways;                      // endpoints that hear about health
};

// Invariants: a request is in `requests_` from its admission until its worker says `finished`, its
// worker is lost, or all of it is cancelled and the worker said so; a worker's load is the sum over
// those requests.
class RouterCore {
 public:
  // All references must outlive the core.
  RouterCore(const Clock& clock, wire::Outbox& outbox, const RoutingPolicy& policy,
             RouterOptions options);

  void on_accepted(wire::Accepted message);
  void on_cancelled(const wire::Cancelled& message);
  void on_finished(const wire::Finished& message);
  void on_heartbeat(const wire::Heartbeat& message);
  // Every kHeartbeatInterval: ends the requests of lost workers and tells the gateways their
  // health.
  void on_tick();

  [[nodiscard]] size_t requests_in_flight() const { return requests_.size(); }
  // Asserts the invariants above; O(requests).
  void check_invariants() const;

 private:
  struct Worker {
    WorkerView view;
    std::string endpoint;
    uint64_t incarnation = 0;
    TimePoint last_heartbeat{};
    bool heard = false;  // since it was last lost
    bool stalled = false;
  };
  struct Flight {
    std::string gateway;
    size_t worker = 0;
    uint32_t attempt = 0;
    uint32_t prompt_tokens = 0;
    TimePoint routed{};
  };
  using Flights = std::unordered_map<RequestId, Flight>;

  void reject(const wire::Request& request, Status error, std::chrono::milliseconds retry_after);
  void lose_worker(size_t index, const std::string& why);
  void forget(Flights::iterator flight);
  [[nodiscard]] Worker* find_worker(WorkerId id);
  [[nodiscard]] wire::Health health() const;
  void tell_health();
  // Predicted time until a place is free: by Little's law, mean duration / requests in flight.
  [[nodiscard]] std::chrono::milliseconds predicted_wait() const;

  const Clock& clock_;
  wire::Outbox& outbox_;
  const RoutingPolicy& policy_;
  const RouterOptions options_;
  TimePoint last_tick_;
  std::vector<Worker> workers_;
  Flights requests_;
  double mean_duration_s_ = 1.0;  // of a request, exponentially averaged
};

}  // namespace troupe
