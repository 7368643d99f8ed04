#pragma once
// A whole cluster in one process: gateway, router, one worker in the role `mixed` with its device
// and KV-cache manager, joined by the loopback transport. The only place of this program that picks
// implementations.

#include <kj/async-unix.h>
#include <kj/timer.h>

#include <memory>
#include <optional>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include "actors/decode/decode_actor.h"
#include "actors/router/router_actor.h"
#include "actors/wire/inbox_actor.h"
#include "actors/wire/transport_outbox.h"
#include "apps/node/gateway_loop.h"
#include "apps/node/loaded_model.h"
#include "policies/routing/least_ttft.h"
#include "transport/loopback/loopback_transport.h"

namespace troupe {

// Lives on the thread of its event loop. Destroying it ends the actors and waits for the step in
// flight.
class LocalCluster final {
 public:
  // `loaded`, `clock` and `metrics` must outlive the cluster.
  [[nodiscard]] static Result<std::unique_ptr<LocalCluster>> start(
      const EngineOptions& options, LoadedModel& loaded, const Clock& clock,
      ServingMetrics& metrics, kj::UnixEventPort& event_port, kj::Timer& timer);
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
  LocalCluster(const EngineOptions& options, LoadedModel& loaded, const Clock& clock,
               ServingMetrics& metrics, kj::UnixEventPort& event_port, kj::Timer& timer);

  [[nodiscard]] Status spawn(const EngineOptions& options, const Clock& clock,
                             ServingMetrics& metrics);

  LoadedModel& loaded_;
  kj::Timer& timer_;
  LoopbackTransport transport_;
  wire::TransportOutbox outbox_;
  LeastTtft policy_;
  std::unique_ptr<GatewayLoop> gateway_;
  RouterOptions router_options_;
  caf::actor_system_config config_;
  std::optional<caf::actor_system> system_;
  caf::actor router_, decode_;
  std::unique_ptr<wire::ActorInbox> router_inbox_, decode_inbox_;
  wire::Health last_health_;
};

}  // namespace troupe
