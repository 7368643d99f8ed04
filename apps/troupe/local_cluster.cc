#include "apps/troupe/local_cluster.h"

#include <glog/logging.h>
#include <caf/send.hpp>

#include "actors/device/device_actor.h"
#include "actors/kv_cache_manager/kv_cache_manager_actor.h"
#include "apps/node/endpoints.h"
#include "base/assert.h"
#include "base/os/entropy.h"

namespace troupe {
namespace {

constexpr WorkerId kWorker{0};
// The actors only plan and pass on; the device computes on threads of its own.
constexpr size_t kActorThreads = 1;
constexpr kj::Duration kReadyPoll = 2 * kj::MILLISECONDS;
constexpr kj::Duration kReadyDeadline = 3 * limits::kHeartbeatTimeout.count() * kj::MILLISECONDS;

}  // namespace

Result<std::unique_ptr<LocalCluster>> LocalCluster::start(const EngineOptions& options,
                                                          LoadedModel& loaded, const Clock& clock,
                                                          ServingMetrics& metrics,
                                                          kj::UnixEventPort& event_port,
                                                          kj::Timer& timer) {
  std::unique_ptr<LocalCluster> cluster(
      new LocalCluster(options, loaded, clock, metrics, event_port, timer));
  TROUPE_RETURN_IF_ERROR(cluster->spawn(options, clock, metrics));
  return cluster;
}

LocalCluster::LocalCluster(const EngineOptions& options, LoadedModel& loaded, const Clock& clock,
                           ServingMetrics& metrics, kj::UnixEventPort& event_port, kj::Timer& timer)
    : loaded_(loaded), timer_(timer), outbox_(transport_) {
  gateway_ = std::make_unique<GatewayLoop>(clock, outbox_, metrics,
                                           GatewayOptions{kGatewayEndpoint, kRouterEndpoint},
                                           event_port, timer);
  gateway_->set_observers([this](const wire::Health& report) { last_health_ = report; }, {});
  // Work stealing polls when idle; sharing sleeps.
  config_.set("scheduler.policy", caf::atom("sharing"));
  config_.set("scheduler.max-threads", kActorThreads);
  router_options_.requests_in_flight_max = options.requests_in_flight_max;
  router_options_.endpoint = kRouterEndpoint;
  router_options_.gateways = {kGatewayEndpoint};
}

// Each endpoint is bound before whoever sends to it exists, so that no first message is lost.
Status LocalCluster::spawn(const EngineOptions& options, const Clock& clock,
                           ServingMetrics& metrics) {
  TROUPE_RETURN_IF_ERROR(transport_.bind(kGatewayEndpoint, gateway_->inbox()));
  gateway_->start();
  system_.emplace(config_);
  router_ = spawn_router(*system_, clock, outbox_, policy_, router_options_);
  router_inbox_ = std::make_unique<wire::ActorInbox>(router_);
  TROUPE_RETURN_IF_ERROR(transport_.bind(kRouterEndpoint, *router_inbox_));

  DecodeOptions decode;
  decode.identity.worker = kWorker;
  decode.identity.incarnation = entropy_u64() | 1;
  decode.identity.endpoint = kWorkerEndpoint;
  decode.identity.context_tokens = loaded_.context_tokens();
  decode.identity.routers = {kRouterEndpoint};
  decode.scheduler.blocks_total = loaded_.kv_blocks();
  decode.scheduler.context_tokens = loaded_.context_tokens();
  decode.scheduler.end_tokens = loaded_.tokenizer().end_tokens();
  decode.scheduler.step_tokens_max = options.step_tokens_max;
  decode.scheduler.running_max = options.running_max;
  decode.scheduler.guesses_max = guesses_max(options);
  const caf::actor device = spawn_device(*system_, loaded_.executor());
  const caf::actor manager = spawn_kv_cache_manager(*system_, loaded_.kv_cache_manager(), metrics);
  decode_ =
      spawn_decode(*system_, clock, outbox_, metrics, std::move(decode), {}, device, manager).actor;
  decode_inbox_ = std::make_unique<wire::ActorInbox>(decode_);
  return transport_.bind(kWorkerEndpoint, *decode_inbox_);
}

LocalCluster::~LocalCluster() {
  gateway_->stop();
  for (const char* endpoint : {kGatewayEndpoint, kRouterEndpoint, kWorkerEndpoint}) {
    transport_.unbind(endpoint);
  }
  if (router_) caf::anon_send_exit(router_, caf::exit_reason::user_shutdown);
  // Its device and its manager follow it.
  if (decode_) caf::anon_send_exit(decode_, caf::exit_reason::user_shutdown);
  router_inbox_.reset();
  decode_inbox_.reset();
  router_ = nullptr;
  decode_ = nullptr;
  system_.reset();  // waits for the actors
}

Status LocalCluster::wait_until_ready(kj::WaitScope& scope) {
  const kj::TimePoint deadline = timer_.now() + kReadyDeadline;
  while (!gateway_->core().health().ok()) {
    if (timer_.now() > deadline) return gateway_->core().health();
    timer_.afterDelay(kReadyPoll).wait(scope);
  }
  return ok_status();
}

}  // namespace troupe
