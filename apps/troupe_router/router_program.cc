#include "apps/troupe_router/router_program.h"

#include <glog/logging.h>
#include <kj/async-io.h>

#include <csignal>

#include "actors/gateway/http/http_frontend.h"
#include "actors/gateway/openai/cluster_body.h"
#include "actors/gateway/rpc/rpc_frontend.h"
#include "actors/router/router_actor.h"
#include "apps/node/endpoints.h"
#include "apps/node/gateway_loop.h"
#include "apps/node/model_seeker.h"
#include "apps/node/node.h"
#include "apps/node/peer_clocks.h"
#include "apps/node/program.h"
#include "apps/node/ready_text.h"
#include "apps/node/supervisor.h"
#include "base/os/entropy.h"
#include "base/os/system_clock.h"
#include "policies/routing/least_ttft.h"

namespace troupe {
namespace {

constexpr kj::Duration kReadyPoll = 10 * kj::MILLISECONDS;

// Serves when the router has workers for every role, and the model is known.
class RouterHealth final : public HealthSource {
 public:
  RouterHealth(const GatewayCore& gateway, const ModelCatalogue& models)
      : gateway_(gateway), models_(models) {}
  [[nodiscard]] Status health() const override {
    Status health = gateway_.health();
    if (health.ok() && models_.empty())
      return {StatusCode::kUnavailable, "no worker has described its model yet"};
    return health;
  }
  [[nodiscard]] Status health_of(std::string_view digest) const override {
    return gateway_.health_of(digest);
  }

 private:
  const GatewayCore& gateway_;
  const ModelCatalogue& models_;
};

class RegistryMetrics final : public MetricsSource {
 public:
  explicit RegistryMetrics(const ModelMetrics& metrics) : metrics_(metrics) {}
  [[nodiscard]] std::string render_metrics() override { return metrics_.serialize(); }

 private:
  const ModelMetrics& metrics_;
};

class RouterProgram {
 public:
  explicit RouterProgram(RouterProgramOptions options)
      : options_(std::move(options)),
        io_(kj::setupAsyncIo()),
        timer_(io_.provider->getTimer()),
        load_(frontend_limits(options_.frontend, options_.requests_in_flight_max), entropy_u64()) {}

  Status run() {
    TROUPE_RETURN_IF_ERROR(ChatTemplates::check(options_.templates));
    TROUPE_RETURN_IF_ERROR(complete_node_options(options_.node));
    TROUPE_RETURN_IF_ERROR(check_frontend_options(options_.frontend));
    TROUPE_ASSIGN_OR_RETURN(const auto keys, read_api_keys(options_.frontend.api_keys));
    keys_.replace(keys);
    TROUPE_ASSIGN_OR_RETURN(node_, Node::start(options_.node, common_record(), clock_));
    say(kSaysListening, node_->address());
    TROUPE_RETURN_IF_ERROR(start_actors());
    const RouterHealth health(gateway_->core(), models_);
    RegistryMetrics metrics_page(metrics_);
    HttpFrontendOptions http_options = http_options_of(options_.frontend, keys_);
    http_options.cluster = [this] {
      return cluster_body(last_health_, node_->transport().peers());
    };
    HttpFrontend http(*io_.lowLevelProvider, timer_, io_.unixEventPort, gateway_->core(), models_,
                      health, metrics_page, clock_, load_, http_options);
    TROUPE_ASSIGN_OR_RETURN(const uint16_t port,
                            http.listen(options_.http_host, options_.http_port));
    say(kSaysHttp, options_.http_host + ":" + std::to_string(port));
    RpcFrontend rpc(*io_.lowLevelProvider, timer_, gateway_->core(), models_, health, clock_, load_,
                    TROUPE_VERSION, &keys_);
    if (options_.rpc_port) {
      TROUPE_ASSIGN_OR_RETURN(const uint16_t rpc_port,
                              rpc.listen(options_.http_host, *options_.rpc_port));
      say(kSaysRpc, options_.http_host + ":" + std::to_string(rpc_port));
    }
    kj::Promise<void> reloads = kj::NEVER_DONE;
    if (!options_.frontend.api_keys.file.empty()) {
      reloads = on_each_hangup(io_.unixEventPort, [this] {
                  reload_api_keys(options_.frontend, keys_);
                }).eagerlyEvaluate(nullptr);
    }
    bool ended = false;
    auto signal =
        on_end_signal(io_.unixEventPort).then([&] { ended = true; }).eagerlyEvaluate(nullptr);
    wait_until_ready(health, port, ended);
    signal.wait(io_.waitScope);
    LOG(INFO) << "ending: " << load_.generations() << " requests may finish within "
              << options_.drain_seconds << " s; a second signal ends at once";
    auto second = end_at_once_on_signal(io_.unixEventPort);
    const std::chrono::seconds grace(options_.drain_seconds);
    auto drained = kj::joinPromises(kj::arr(http.drain(grace), rpc.drain(grace)));
    drained.exclusiveJoin(kj::mv(second)).wait(io_.waitScope);
    LOG(INFO) << "ended";
    return ok_status();
  }

 private:
  // Each endpoint is bound before whoever sends to it exists, so that no first message is lost.
  Status start_actors() {
    const std::string address = node_->address() + "/";
    GatewayOptions gateway;
    gateway.endpoint = address + kGatewayEndpoint;
    gateway.router = kRouterEndpoint;
    // Unique among routers and restarts: workers know requests by their ids alone.
    gateway.first_id = entropy_u64() >> 2;
    gateway.metrics_of = [this](std::string_view model) -> ServingMetrics& {
      return metrics_.of(model);
    };
    gateway_ = std::make_unique<GatewayLoop>(clock_, node_->outbox(), no_metrics_, gateway,
                                             io_.unixEventPort, timer_);
    use_answer_options(options_.answers, models_);
    seeker_ = std::make_unique<ModelSeeker>(
        clock_, node_->outbox(), models_, metrics_,
        ModelSeekerOptions{gateway.endpoint, options_.served_names, options_.templates});
    gateway_->set_observers(
        [this](const wire::Health& report) {
          last_health_ = report;
          seeker_->on_health(report);
        },
        [this](wire::Described message) { seeker_->on_described(std::move(message)); });
    TROUPE_RETURN_IF_ERROR(node_->bind(kGatewayEndpoint, gateway_->inbox()));
    gateway_->start();
    RouterOptions router;
    router.requests_in_flight_max = options_.requests_in_flight_max;
    router.endpoint = address + kRouterEndpoint;
    router.gateways = {kGatewayEndpoint};
    router.hash_seed = entropy_u64();
    TROUPE_RETURN_IF_ERROR(node_->bind(
        kRouterEndpoint, spawn_router(node_->system(), clock_, node_->outbox(), policy_, router)));
    node_->watch_peers();
    return ok_status();
  }

  void wait_until_ready(const HealthSource& health, uint16_t port, const bool& ended) {
    Status logged;
    while (!ended) {
      const Status now = health.health();
      if (now.ok()) break;
      if (now != logged) LOG(INFO) << "not ready: " << now.message();
      logged = now;
      timer_.afterDelay(kReadyPoll).wait(io_.waitScope);
    }
    if (ended) return;
    const ServedModel& model = models_.at(0).served();
    say(kSaysReady, ready_text(options_.http_host, port, model.name, model.chat_template != nullptr,
                               keys_.required()));
  }

  const SystemClock clock_;
  RouterProgramOptions options_;
  kj::AsyncIoContext io_;
  kj::Timer& timer_;
  ModelMetrics metrics_;
  ServingMetrics no_metrics_{""};  // every model has its own
  ApiKeys keys_;
  FrontendLoad load_;
  ModelCatalogue models_;
  LeastTtft policy_;
  wire::Health last_health_;  // for people
  std::optional<PeerClocks> clocks_;
  // The gateway's inbox outlives the node, which unbinds it.
  std::unique_ptr<ModelSeeker> seeker_;
  std::unique_ptr<GatewayLoop> gateway_;
  std::unique_ptr<Node> node_;
};

}  // namespace

Status run_router(RouterProgramOptions options) {
  // Before any thread starts.
  if (!options.frontend.api_keys.file.empty()) kj::UnixEventPort::captureSignal(SIGHUP);
  return RouterProgram(std::move(options)).run();
}

}  // namespace troupe
