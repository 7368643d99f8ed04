// Usage: instant_server MODEL.gguf PORT
//
// Everything of Troupe but the computing: the HTTP front end, the gateway, the router and a worker
// with its scheduler and KV-cache manager, of which only the device is exchanged, for one that
// answers each step at once. What a request costs here is what Troupe adds to a model. Only the
// tokenizer and the chat template are read from the file. Ends on SIGTERM.

#include <glog/logging.h>
#include <kj/async-io.h>
#include <kj/async-unix.h>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>

#include <charconv>
#include <cstring>
#include <iostream>
#include <optional>

#include "actors/decode/decode_actor.h"
#include "actors/device/device_actor.h"
#include "actors/gateway/http/http_frontend.h"
#include "actors/kv_cache_manager/kv_cache_manager_actor.h"
#include "actors/router/router_actor.h"
#include "actors/wire/inbox_actor.h"
#include "actors/wire/transport_outbox.h"
#include "apps/node/described_model.h"
#include "apps/node/endpoints.h"
#include "apps/node/gateway_loop.h"
#include "apps/node/program.h"
#include "base/os/entropy.h"
#include "base/os/system_clock.h"
#include "engine/tokenizer/gguf_tokenizer.h"
#include "policies/routing/least_ttft.h"
#include "transport/loopback/loopback_transport.h"

namespace troupe {
namespace {

constexpr uint32_t kContextTokens = 8192, kBlocks = 65536, kRunning = 1024;
constexpr const char* kModelName = "instant";
constexpr kj::Duration kReadyPoll = 2 * kj::MILLISECONDS;
constexpr Duration kDrain = std::chrono::seconds(2);
constexpr TokenId kFirstToken = 1000;  // ordinary words from here on
constexpr TokenId kTokens = 8192;

StepResult result_of(const StepPlan& plan, TimePoint now) {
  StepResult result;
  result.number = plan.number;
  for (const StepSlice& slice : plan.slices) {
    SliceResult& out = result.slices.emplace_back();
    out.sequence = slice.sequence;
    const auto position = slice.position + static_cast<TokenId>(slice.tokens.size());
    if (slice.sample)
      out.sampled = {{.token = kFirstToken + static_cast<TokenId>(position % kTokens)}};
  }
  result.started = result.finished = now;
  return result;
}

struct NoState {};

// A device whose steps take no time.
caf::behavior instant_device(caf::stateful_actor<NoState>* self, const Clock* clock) {
  return {[self, clock](const DeviceStep& step) {
    self->send(caf::actor_cast<caf::actor>(self->current_sender()),
               DeviceStepDone{std::make_shared<const Result<StepResult>>(
                   result_of(*step.plan, clock->now()))});
  }};
}

class AlwaysHealthy final : public HealthSource {
 public:
  [[nodiscard]] Status health() const override { return ok_status(); }
};

class Page final : public MetricsSource {
 public:
  explicit Page(const ServingMetrics& metrics) : metrics_(metrics) {}
  [[nodiscard]] std::string render_metrics() override { return metrics_.serialize(); }

 private:
  const ServingMetrics& metrics_;
};

// The same actors in the same places as in `troupe serve`.
class InstantCluster {
 public:
  InstantCluster(const Tokenizer& tokenizer, const Clock& clock, kj::AsyncIoContext& io)
      : metrics_(kModelName),
        outbox_(transport_),
        gateway_(clock, outbox_, metrics_, GatewayOptions{kGatewayEndpoint, kRouterEndpoint},
                 io.unixEventPort, io.provider->getTimer()),
        hasher_(entropy_u64()),
        kv_({.blocks = kBlocks}, hasher_),
        clock_(clock) {
    config_.set("scheduler.policy", caf::atom("sharing"));
    config_.set("scheduler.max-threads", size_t{1});
    router_options_.endpoint = kRouterEndpoint;
    router_options_.gateways = {kGatewayEndpoint};
    decode_options_.identity.worker = WorkerId{0};
    decode_options_.identity.incarnation = entropy_u64() | 1;
    decode_options_.identity.endpoint = kWorkerEndpoint;
    decode_options_.identity.context_tokens = kContextTokens;
    decode_options_.identity.routers = {kRouterEndpoint};
    decode_options_.scheduler.blocks_total = kBlocks;
    decode_options_.scheduler.context_tokens = kContextTokens;
    decode_options_.scheduler.end_tokens = tokenizer.end_tokens();
    decode_options_.scheduler.running_max = kRunning;
  }
  InstantCluster(const InstantCluster&) = delete;
  InstantCluster& operator=(const InstantCluster&) = delete;

  Status start() {
    TROUPE_RETURN_IF_ERROR(transport_.bind(kGatewayEndpoint, gateway_.inbox()));
    gateway_.start();
    system_.emplace(config_);
    router_ = spawn_router(*system_, clock_, outbox_, policy_, router_options_);
    router_inbox_ = std::make_unique<wire::ActorInbox>(router_);
    TROUPE_RETURN_IF_ERROR(transport_.bind(kRouterEndpoint, *router_inbox_));
    const caf::actor device = system_->spawn<caf::detached>(instant_device, &clock_);
    const caf::actor manager = spawn_kv_cache_manager(*system_, kv_, metrics_);
    decode_ =
        spawn_decode(*system_, clock_, outbox_, metrics_, decode_options_, {}, {}, device, manager)
            .actor;
    decode_inbox_ = std::make_unique<wire::ActorInbox>(decode_);
    return transport_.bind(kWorkerEndpoint, *decode_inbox_);
  }

  ~InstantCluster() {
    gateway_.stop();
    for (const char* endpoint : {kGatewayEndpoint, kRouterEndpoint, kWorkerEndpoint})
      transport_.unbind(endpoint);
    for (caf::actor* actor : {&router_, &decode_}) {
      if (*actor) caf::anon_send_exit(*actor, caf::exit_reason::user_shutdown);
      *actor = nullptr;
    }
    router_inbox_.reset();
    decode_inbox_.reset();
    system_.reset();
  }

  GatewayCore& gateway() { return gateway_.core(); }
  [[nodiscard]] const ServingMetrics& metrics() const { return metrics_; }

 private:
  ServingMetrics metrics_;
  LoopbackTransport transport_;
  wire::TransportOutbox outbox_;
  LeastTtft policy_;
  GatewayLoop gateway_;
  Xxh3BlockHasher hasher_;
  KvCacheManagerCore kv_;
  const Clock& clock_;
  RouterOptions router_options_;
  DecodeOptions decode_options_;
  caf::actor_system_config config_;
  std::optional<caf::actor_system> system_;
  caf::actor router_, decode_;
  std::unique_ptr<wire::ActorInbox> router_inbox_, decode_inbox_;
};

Status serve(const std::string& model_path, uint16_t port) {
  const SystemClock clock;
  kj::AsyncIoContext io = kj::setupAsyncIo();
  TROUPE_ASSIGN_OR_RETURN(const auto file, GgufFile::open(model_path));
  TROUPE_ASSIGN_OR_RETURN(const TokenizerSpec spec, tokenizer_spec_of(*file));
  TROUPE_ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer::create(spec));
  TROUPE_ASSIGN_OR_RETURN(const ChatTemplates templates, ChatTemplates::of(*file));
  InstantCluster cluster(*tokenizer, clock, io);
  TROUPE_RETURN_IF_ERROR(cluster.start());
  ModelCatalogue models;
  ServedModel served{kModelName, kContextTokens, clock.unix_seconds(), *tokenizer};
  served.chat_template = templates.plain();
  TROUPE_RETURN_IF_ERROR(models.add(std::move(served)));
  const AlwaysHealthy health;
  Page page(cluster.metrics());
  FrontendLoad load(FrontendLimits{}, entropy_u64());
  HttpFrontend http(*io.lowLevelProvider, io.provider->getTimer(), io.unixEventPort,
                    cluster.gateway(), models, health, page, clock, load, {});
  TROUPE_ASSIGN_OR_RETURN(const uint16_t bound, http.listen("127.0.0.1", port));
  while (!cluster.gateway().health().ok())
    io.provider->getTimer().afterDelay(kReadyPoll).wait(io.waitScope);
  std::cout << "ready " << bound << std::endl;
  on_end_signal(io.unixEventPort).wait(io.waitScope);
  http.drain(kDrain).wait(io.waitScope);
  return ok_status();
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  troupe::init_program("instant_server");
  uint16_t port = 0;
  if (argc != 3 ||
      std::from_chars(argv[2], argv[2] + std::strlen(argv[2]), port).ec != std::errc()) {
    std::cerr << "Usage: instant_server MODEL.gguf PORT\n";
    return 2;
  }
  FLAGS_minloglevel = google::GLOG_WARNING;
  return troupe::exit_code_of("instant_server", troupe::serve(argv[1], port));
}
