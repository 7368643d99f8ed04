#include <glog/logging.h>
#include <kj/async-io.h>
#include <kj/async-unix.h>

#include <csignal>

#include "actors/gateway/http/http_frontend.h"
#include "actors/gateway/openai/cluster_body.h"
#include "actors/gateway/rpc/rpc_frontend.h"
#include "apps/node/frontend_options.h"
#include "apps/node/program.h"
#include "apps/node/ready_text.h"
#include "apps/node/supervisor.h"
#include "apps/troupe/local_cluster.h"
#include "apps/troupe/serve_cluster.h"
#include "apps/troupe/served_names.h"
#include "apps/troupe/terminal_answer.h"
#include "base/os/entropy.h"
#include "base/os/system_clock.h"

namespace troupe {
namespace {

class GatewayHealth final : public HealthSource {
 public:
  explicit GatewayHealth(const GatewayCore& gateway) : gateway_(gateway) {}
  [[nodiscard]] Status health() const override { return gateway_.health(); }
  [[nodiscard]] Status health_of(std::string_view digest) const override {
    return gateway_.health_of(digest);
  }

 private:
  const GatewayCore& gateway_;
};

class RegistryMetrics final : public MetricsSource {
 public:
  explicit RegistryMetrics(const ModelMetrics& metrics) : metrics_(metrics) {}
  [[nodiscard]] std::string render_metrics() override { return metrics_.serialize(); }

 private:
  const ModelMetrics& metrics_;
};

// The models of this process, loaded.
struct Models {
  std::vector<std::unique_ptr<LoadedModel>> loaded;
  std::vector<std::vector<std::string>> names;  // of each
  std::vector<std::unique_ptr<const ChatTemplates>> templates;
  ModelCatalogue catalogue;
};

Status load_models(const ServeOptions& options, const Clock& clock, Models& models) {
  TROUPE_ASSIGN_OR_RETURN(models.names, served_names_of(options.models, options.served_names));
  if (options.models.size() > 1 && !options.templates.file.empty()) {
    return invalid_argument("chat-template is for one model, but there are " +
                            std::to_string(options.models.size()) +
                            "; leave it out, or serve this model alone");
  }
  for (size_t i = 0; i < options.models.size(); ++i) {
    EngineOptions engine = options.engine;
    engine.model_path = options.models[i];
    engine.kv_memory_parts = static_cast<uint32_t>(options.models.size());
    TROUPE_ASSIGN_OR_RETURN(auto loaded, LoadedModel::load(engine, clock));
    LOG(INFO) << models.names[i][0] << ": " << loaded->summary();
    TROUPE_ASSIGN_OR_RETURN(ChatTemplates templates,
                            ChatTemplates::choose(options.templates, loaded->file()));
    models.templates.push_back(std::make_unique<const ChatTemplates>(std::move(templates)));
    for (const std::string& name : models.names[i]) {
      ServedModel served{name,
                         loaded->context_tokens(),
                         clock.unix_seconds(),
                         loaded->tokenizer(),
                         models.templates.back()->plain(),
                         models.templates.back()->with_tools(),
                         options.templates.request_templates()};
      served.embedding_width = loaded->embedding_width();
      served.digest = loaded->digest();
      served.root = models.names[i][0];
      TROUPE_RETURN_IF_ERROR(models.catalogue.add(std::move(served)));
    }
    models.loaded.push_back(std::move(loaded));
  }
  return ok_status();
}

std::vector<LocalModel> local_models(const Models& models) {
  std::vector<LocalModel> out;
  for (size_t i = 0; i < models.loaded.size(); ++i)
    out.push_back({*models.loaded[i], models.names[i][0]});
  return out;
}

// Runs the server until a signal ends it.
Status serve(const ServeOptions& options) {
  const SystemClock clock;
  TROUPE_RETURN_IF_ERROR(check_frontend_options(options.frontend));
  TROUPE_ASSIGN_OR_RETURN(const auto key_texts, read_api_keys(options.frontend.api_keys));
  ApiKeys keys(key_texts);
  // Before any thread starts, so that none of them takes these signals.
  kj::UnixEventPort::captureSignal(SIGTERM);
  kj::UnixEventPort::captureSignal(SIGINT);
  const bool reloads = !options.frontend.api_keys.file.empty();
  if (reloads) kj::UnixEventPort::captureSignal(SIGHUP);
  kj::AsyncIoContext io = kj::setupAsyncIo();
  kj::Timer& timer = io.provider->getTimer();
  Models models;
  use_answer_options(options.answers, models.catalogue);
  TROUPE_RETURN_IF_ERROR(load_models(options, clock, models));
  ModelMetrics metrics;
  TROUPE_ASSIGN_OR_RETURN(const auto cluster,
                          LocalCluster::start(options.engine, local_models(models), clock, metrics,
                                              io.unixEventPort, timer));
  const GatewayHealth health(cluster->gateway());
  RegistryMetrics metrics_page(metrics);
  FrontendLoad load(frontend_limits(options.frontend, options.engine.requests_in_flight_max),
                    entropy_u64());
  HttpFrontendOptions http_options = http_options_of(options.frontend, keys);
  http_options.cluster = [&cluster] { return cluster_body(cluster->last_health(), {}); };
  HttpFrontend http(*io.lowLevelProvider, timer, io.unixEventPort, cluster->gateway(),
                    models.catalogue, health, metrics_page, clock, load, http_options);
  TROUPE_ASSIGN_OR_RETURN(const uint16_t port, http.listen(options.host, options.port));
  RpcFrontend rpc(*io.lowLevelProvider, timer, cluster->gateway(), models.catalogue, health, clock,
                  load, TROUPE_VERSION, &keys);
  uint16_t rpc_port = 0;
  if (options.rpc_port) {
    TROUPE_ASSIGN_OR_RETURN(rpc_port, rpc.listen(options.host, *options.rpc_port));
  }
  TROUPE_RETURN_IF_ERROR(cluster->wait_until_ready(io.waitScope));
  const ServedModel& first = models.catalogue.at(0).served();
  say(kSaysReady,
      ready_text(options.host, port, first.name, first.chat_template != nullptr, keys.required()));
  if (options.rpc_port) say(kSaysReady, "rpc " + options.host + ":" + std::to_string(rpc_port));

  auto reloading =
      (reloads ? on_each_hangup(io.unixEventPort, [&] { reload_api_keys(options.frontend, keys); })
               : kj::Promise<void>(kj::NEVER_DONE))
          .eagerlyEvaluate(nullptr);
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
  Status status = ChatTemplates::check(options.templates);
  if (status.ok()) status = options.cluster ? serve_cluster(options) : serve(options);
  return status.ok() ? 0 : fail(status);
}

}  // namespace troupe
