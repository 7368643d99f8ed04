#include <glog/logging.h>
#include <kj/async-io.h>
#include <kj/async-unix.h>

#include <csignal>
#include <filesystem>
#include <utility>

#include "actors/gateway/http/http_frontend.h"
#include "actors/gateway/openai/cluster_body.h"
#include "actors/gateway/rpc/rpc_frontend.h"
#include "apps/node/program.h"
#include "apps/node/ready_text.h"
#include "apps/node/supervisor.h"
#include "apps/troupe/local_cluster.h"
#include "apps/troupe/serve_cluster.h"
#include "apps/troupe/terminal_answer.h"
#include "base/os/entropy.h"
#include "base/os/system_clock.h"

namespace troupe {
namespace {

class GatewayHealth final : public HealthSource {
 public:
  explicit GatewayHealth(const GatewayCore& gateway) : gateway_(gateway) {}
  [[nodiscard]] Status health() const override { return gateway_.health(); }

 private:
  const GatewayCore& gateway_;
};

class RegistryMetrics final : public MetricsSource {
 public:
  explicit RegistryMetrics(const ServingMetrics& metrics) : metrics_(metrics) {}
  [[nodiscard]] std::string render_metrics() override { return metrics_.serialize(); }

 private:
  const ServingMetrics& metrics_;
};

std::string served_name(const ServeOptions& options) {
  if (!options.served_model_name.empty()) return options.served_model_name;
  return std::filesystem::path(options.engine.model_path).stem().string();
}

// Runs the server until a signal ends it.
Status serve(const ServeOptions& options) {
  const SystemClock clock;
  // Before any thread starts, so that none of them takes these signals.
  kj::UnixEventPort::captureSignal(SIGTERM);
  kj::UnixEventPort::captureSignal(SIGINT);
  kj::AsyncIoContext io = kj::setupAsyncIo();
  kj::Timer& timer = io.provider->getTimer();
  TROUPE_ASSIGN_OR_RETURN(const auto loaded, LoadedModel::load(options.engine, clock));
  const std::string name = served_name(options);
  ServingMetrics metrics(name);
  TROUPE_ASSIGN_OR_RETURN(
      const auto cluster,
      LocalCluster::start(options.engine, *loaded, clock, metrics, io.unixEventPort, timer));
  const GatewayHealth health(cluster->gateway());
  RegistryMetrics metrics_page(metrics);
  ModelCatalogue models;
  ServedModel served{name, loaded->context_tokens(), clock.unix_seconds(), loaded->tokenizer(),
                     loaded->chat_template()};
  served.embedding_width = loaded->embedding_width();
  TROUPE_RETURN_IF_ERROR(models.add(std::move(served)));
  FrontendLoad load(FrontendLimits{}, entropy_u64());
  HttpFrontendOptions http_options;
  http_options.version = TROUPE_VERSION;
  http_options.cluster = [&cluster] { return cluster_body(cluster->last_health(), {}); };
  HttpFrontend http(*io.lowLevelProvider, timer, io.unixEventPort, cluster->gateway(), models,
                    health, metrics_page, clock, load, http_options);
  TROUPE_ASSIGN_OR_RETURN(const uint16_t port, http.listen(options.host, options.port));
  RpcFrontend rpc(*io.lowLevelProvider, timer, cluster->gateway(), models, health, clock, load,
                  TROUPE_VERSION);
  uint16_t rpc_port = 0;
  if (options.rpc_port) {
    TROUPE_ASSIGN_OR_RETURN(rpc_port, rpc.listen(options.host, *options.rpc_port));
  }
  LOG(INFO) << loaded->summary();
  TROUPE_RETURN_IF_ERROR(cluster->wait_until_ready(io.waitScope));
  say(kSaysReady, ready_text(options.host, port, name, loaded->chat_template() != nullptr));
  if (options.rpc_port) say(kSaysReady, "rpc " + options.host + ":" + std::to_string(rpc_port));

  on_end_signal(io.unixEventPort).wait(io.waitScope);
  LOG(INFO) << "ending: " << load.generations() << " requests may finish within "
            << limits::kDrainDeadline.count() << " s; a second signal ends at once";
  auto second = end_at_once_on_signal(io.unixEventPort);
  kj::joinPromises(kj::arr(http.drain(limits::kDrainDeadline), rpc.drain(limits::kDrainDeadline)))
      .exclusiveJoin(kj::mv(second))
      .wait(io.waitScope);
  LOG(INFO) << "ended";
  return ok_status();
}

}  // namespace

int run_serve(const ServeOptions& options) {
  const Status status = options.cluster ? serve_cluster(options) : serve(options);
  return status.ok() ? 0 : fail(status);
}

}  // namespace troupe
