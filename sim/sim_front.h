#pragma once
// A front of a simulated cluster: the process of a router and its gateway, with their real cores.

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "actors/gateway/gateway_core.h"
#include "actors/router/router_core.h"
#include "policies/routing/routing_policy.h"
#include "sim/process.h"

namespace troupe::sim {

// What the clients of one front saw; its metrics must say the same.
struct Tally {
  uint64_t stop = 0, length = 0, abort = 0, error = 0;  // choices, by how they ended
  uint64_t tokens = 0, prompt_tokens = 0;
  uint64_t first_tokens = 0;  // choices with at least one
};

struct SimFrontOptions {
  uint32_t requests_in_flight_max = 1024;
  uint64_t first_id = 1;  // of the gateway's names for requests
};

class SimFront final {
 public:
  // `policy` must outlive the front.
  SimFront(const Environment& environment, const Process::Options& process,
           const RoutingPolicy& policy, const SimFrontOptions& options);
  ~SimFront();
  SimFront(const SimFront&) = delete;
  SimFront& operator=(const SimFront&) = delete;

  [[nodiscard]] Process& process() { return process_; }
  [[nodiscard]] GatewayCore& gateway() { return gateway_; }
  [[nodiscard]] Tally& tally() { return tally_; }

  [[nodiscard]] std::string unrest() const;
  void check_invariants() const;
  // Against the tally; reports what differs.
  void check_metrics();

 private:
  void take_at_router(wire::Message message);
  void take_at_gateway(const wire::Message& message);
  void check_limit();

  const SimFrontOptions options_;
  ServingMetrics metrics_{"sim"};
  Process process_;
  SimOutbox outbox_;
  RouterCore router_;
  GatewayCore gateway_;
  SimInbox router_inbox_, gateway_inbox_;
  Tally tally_;
};

}  // namespace troupe::sim
