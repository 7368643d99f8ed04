#pragma once
// The router: admits requests, places them on workers, and knows which workers live. Plain state
// and one function per message; the shell (router_actor.h) feeds it and delivers what it sends.

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "actors/router/prefix_index.h"
#include "actors/router/worker_table.h"
#include "actors/wire/outbox.h"
#include "base/clock.h"
#include "base/limits.h"
#include "policies/routing/routing_policy.h"

namespace troupe {

struct RouterOptions {
  uint32_t requests_in_flight_max = limits::kRequestsInFlightDefault;
  std::string endpoint = "router";    // where workers report that a request has finished
  std::vector<std::string> gateways;  // endpoints that hear about health
  uint64_t hash_seed = 1;  // of block identities in the prefix index; nobody may guess it
};

// Each model is a cluster of its own: a request goes to workers of its model alone, whatever those
// of others hold or could do.
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
  void on_observe(const wire::Observe& message);
  // The transport has lost the node; its workers are lost with it.
  void on_peer_lost(std::string_view node, const std::string& why);
  // Every kHeartbeatInterval: ends the requests of lost workers and tells the gateways their
  // health.
  void on_tick();

  [[nodiscard]] size_t requests_in_flight() const { return requests_.size(); }
  [[nodiscard]] wire::Health health() const;
  // Asserts the invariants above; O(requests).
  void check_invariants() const;

 private:
  struct Flight {
    std::string gateway;
    WorkerId worker;
    uint32_t attempt = 0;
    uint32_t prompt_tokens = 0;
    TimePoint routed{};
  };
  using Flights = std::unordered_map<RequestId, Flight>;

  // Whose request it is; not for a model that this router knows nothing of.
  [[nodiscard]] Status resolve_model(wire::Request& request) const;
  void reject(const wire::Request& request, Status error, std::chrono::milliseconds retry_after);
  void remember(const RoutePlan& plan, std::span<const WorkerView> views,
                const PrefixIndex::Chain& chain);
  [[nodiscard]] wire::Routed plan(wire::Request&& request, const RoutePlan& plan,
                                  std::span<const WorkerView> views);
  // Ends the requests that it had, and forgets what it cached.
  void lose(WorkerId id, const std::string& why);
  void forget(Flights::iterator flight);
  void tell_health();
  // Predicted time until a place is free: by Little's law, mean duration / requests in flight.
  [[nodiscard]] std::chrono::milliseconds predicted_wait() const;

  const Clock& clock_;
  wire::Outbox& outbox_;
  const RoutingPolicy& policy_;
  const RouterOptions options_;
  TimePoint last_tick_;
  WorkerTable workers_;
  const Xxh3BlockHasher hasher_;
  PrefixIndex prefixes_;
  std::map<std::string, TimePoint> observers_;  // endpoint, when it last asked
  Flights requests_;
  double mean_duration_s_ = 1.0;  // of a request, exponentially averaged
};

}  // namespace troupe
