#pragma once
// A whole cluster in one process: gateway, router, for each model one worker in the role `mixed`
// with its device and KV-cache manager, joined by the loopback transport. The only place of this
// program that picks implementations.

#include <kj/async-unix.h>
#include <kj/timer.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include "actors/decode/decode_actor.h"
#include "actors/router/router_actor.h"
#include "actors/wire/inbox_actor.h"
#include "actors/wire/transport_outbox.h"
#include "apps/node/gateway_loop.h"
#include "apps/node/loaded_model.h"
#include "base/metrics/model_metrics.h"
#include "policies/routing/least_ttft.h"
#include "transport/loopback/loopback_transport.h"

namespace troupe {

// A model of this process, which outlives the cluster.
struct LocalModel {
  LoadedModel& loaded;
  std::string name;  // for people
};

// Lives on the thread of its event loop. Destroying it ends the actors and waits for the steps in
// flight.
class LocalCluster final {
 public:
  // `clock` and `metrics`, which gets a set for each model, must outlive the cluster. Models of one
  // digest are refused.
  [[nodiscard]] static Result<std::unique_ptr<LocalCluster>> start(
      const EngineOptions& options, const std::vector<LocalModel>& models, const Clock& clock,
      ModelMetrics& metrics, kj::UnixEventPort& event_port, kj::Timer& timer);
  ~LocalCluster();
  LocalCluster(const LocalCluster&) = delete;
  LocalCluster& operator=(const LocalCluster&) = delete;

  [[nodiscard]] GatewayCore& gateway() { return gateway_->core(); }
  // As the router told it last; for people.
  [[nodiscard]] const wire::Health& last_health() const { return last_health_; }
  // Runs the loop until the worker has been heard of and requests are taken, which takes one
  // heartbeat. kUnavailable: it was not heard of for many; the message says what is missing.
  [[nodiscard]] Status wait_until_ready(kj::WaitScope& scope);

 private:
  LocalCluster(const EngineOptions& options, const Clock& clock, ModelMetrics& metrics,
               kj::UnixEventPort& event_port, kj::Timer& timer);

  [[nodiscard]] Status spawn_router_actor(const Clock& clock);
  [[nodiscard]] Status spawn_worker(const EngineOptions& options, const LocalModel& model,
                                    const Clock& clock, ServingMetrics& metrics);
  [[nodiscard]] Status bind(const std::string& endpoint, const caf::actor& actor);

  ServingMetrics no_metrics_{""};  // every model has its own
  kj::Timer& timer_;
  LoopbackTransport transport_;
  wire::TransportOutbox outbox_;
  LeastTtft policy_;
  std::unique_ptr<GatewayLoop> gateway_;
  RouterOptions router_options_;
  caf::actor_system_config config_;
  std::optional<caf::actor_system> system_;
  std::vector<caf::actor> actors_;  // the router, then the workers
  std::vector<std::unique_ptr<wire::ActorInbox>> inboxes_;
  std::vector<std::string> endpoints_;
  std::vector<std::string> digests_;
  wire::Health last_health_;
};

}  // namespace troupe
