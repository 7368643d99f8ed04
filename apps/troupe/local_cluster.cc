#include "apps/troupe/local_cluster.h"

#include <glog/logging.h>
#include <caf/send.hpp>

#include <algorithm>

#include "actors/device/device_actor.h"
#include "actors/kv_cache_manager/kv_cache_manager_actor.h"
#include "apps/node/endpoints.h"
#include "base/assert.h"
#include "base/os/entropy.h"

namespace troupe {
namespace {

// The actors only plan and pass on; the device computes on threads of its own.
constexpr size_t kActorThreads = 1;
constexpr kj::Duration kReadyPoll = 2 * kj::MILLISECONDS;
constexpr kj::Duration kReadyDeadline = 1 * kj::MINUTES;

}  // namespace

Result<std::unique_ptr<LocalCluster>> LocalCluster::start(const EngineOptions& options,
                                                          const std::vector<LocalModel>& models,
                                                          const Clock& clock, ModelMetrics& metrics,
                                                          kj::UnixEventPort& event_port,
                                                          kj::Timer& timer) {
  std::unique_ptr<LocalCluster> cluster(
      new LocalCluster(options, clock, metrics, event_port, timer));
  TROUPE_RETURN_IF_ERROR(cluster->spawn_router_actor(clock));
  for (const LocalModel& model : models) {
    const std::string& digest = model.loaded.digest();
    auto& known = cluster->digests_;
    if (std::find(known.begin(), known.end(), digest) != known.end()) {
      return invalid_argument(model.name +
                              " is the same model as another one; give it a second name with "
                              "--served-model-name instead of loading it twice");
    }
    known.push_back(digest);
    TROUPE_RETURN_IF_ERROR(
        cluster->spawn_worker(options, model, clock, metrics.add(digest, model.name)));
  }
  return cluster;
}

LocalCluster::LocalCluster(const EngineOptions& options, const Clock& clock, ModelMetrics& metrics,
                           kj::UnixEventPort& event_port, kj::Timer& timer)
    : timer_(timer), outbox_(transport_) {
  GatewayOptions gateway{kGatewayEndpoint, kRouterEndpoint};
  gateway.metrics_of = [&metrics](std::string_view model) -> ServingMetrics& {
    return metrics.of(model);
  };
  gateway_ = std::make_unique<GatewayLoop>(clock, outbox_, no_metrics_, std::move(gateway),
                                           event_port, timer);
  gateway_->set_observers([this](const wire::Health& report) { last_health_ = report; }, {});
  // Work stealing polls when idle; sharing sleeps.
  config_.set("scheduler.policy", caf::atom("sharing"));
  config_.set("scheduler.max-threads", kActorThreads);
  router_options_.requests_in_flight_max = options.requests_in_flight_max;
  router_options_.endpoint = kRouterEndpoint;
  router_options_.gateways = {kGatewayEndpoint};
}

Status LocalCluster::bind(const std::string& endpoint, const caf::actor& actor) {
  actors_.push_back(actor);
  inboxes_.push_back(std::make_unique<wire::ActorInbox>(actor));
  TROUPE_RETURN_IF_ERROR(transport_.bind(endpoint, *inboxes_.back()));
  endpoints_.push_back(endpoint);
  return ok_status();
}

// Each endpoint is bound before whoever sends to it exists, so that no first message is lost.
Status LocalCluster::spawn_router_actor(const Clock& clock) {
  TROUPE_RETURN_IF_ERROR(transport_.bind(kGatewayEndpoint, gateway_->inbox()));
  endpoints_.emplace_back(kGatewayEndpoint);
  gateway_->start();
  system_.emplace(config_);
  return bind(kRouterEndpoint, spawn_router(*system_, clock, outbox_, policy_, router_options_));
}

Status LocalCluster::spawn_worker(const EngineOptions& options, const LocalModel& model,
                                  const Clock& clock, ServingMetrics& metrics) {
  LoadedModel& loaded = model.loaded;
  const size_t number = digests_.size() - 1;
  const std::string endpoint =
      kWorkerEndpoint + (number == 0 ? "" : "-" + std::to_string(number + 1));
  DecodeOptions decode;
  decode.identity.worker = WorkerId(static_cast<uint32_t>(number));
  decode.identity.incarnation = entropy_u64() | 1;
  decode.identity.endpoint = endpoint;
  decode.identity.model = loaded.digest();
  decode.identity.model_name = model.name;
  decode.identity.context_tokens = loaded.context_tokens();
  decode.identity.kv_type = loaded.kv_extent().type;
  decode.identity.routers = {kRouterEndpoint};
  decode.scheduler = loaded.scheduler_options(options);
  loaded.describe_kv(metrics);
  const caf::actor device = spawn_device(*system_, loaded.executor());
  const caf::actor manager = spawn_kv_cache_manager(*system_, loaded.kv_cache_manager(), metrics);
  return bind(endpoint, spawn_decode(
                            *system_, clock, outbox_, metrics, std::move(decode), {},
                            [&loaded] { return loaded.make_grammar_vocabulary(); }, device, manager)
                            .actor);
}

LocalCluster::~LocalCluster() {
  gateway_->stop();
  for (const std::string& endpoint : endpoints_) transport_.unbind(endpoint);
  // The devices and the managers follow their workers.
  for (const caf::actor& actor : actors_)
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  inboxes_.clear();
  actors_.clear();
  system_.reset();  // waits for the actors
}

Status LocalCluster::wait_until_ready(kj::WaitScope& scope) {
  const kj::TimePoint deadline = timer_.now() + kReadyDeadline;
  for (const std::string& digest : digests_) {
    while (!gateway_->core().health_of(digest).ok()) {
      if (timer_.now() > deadline) return gateway_->core().health_of(digest);
      timer_.afterDelay(kReadyPoll).wait(scope);
    }
  }
  return ok_status();
}

}  // namespace troupe
