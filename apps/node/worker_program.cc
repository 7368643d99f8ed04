#include "apps/node/worker_program.h"

#include <glog/logging.h>
#include <kj/async-io.h>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <iostream>

#include "actors/worker/mail_actor.h"
#include "apps/node/program.h"
#include "apps/node/status_server.h"
#include "apps/node/supervisor.h"
#include "apps/node/worker.h"
#include "base/limits.h"
#include "base/os/system_clock.h"

namespace troupe {
namespace {

constexpr kj::Duration kPoll = 20 * kj::MILLISECONDS;
// For the answer of the worker's actor, which never blocks.
constexpr std::chrono::seconds kAnswerDeadline{2};

struct Options {
  WorkerOptions worker;
  NodeOptions node;
  std::string role = "decode";  // of troupe-decode
  uint32_t drain_seconds = limits::kDrainDeadline.count();
  std::string metrics_host = "127.0.0.1";
  uint16_t metrics_port = 0;
};

void declare(WorkerKind kind, Settings& settings, Options& options) {
  add_engine_settings(settings, options.worker.engine);
  add_served_name_setting(settings, "Names of the model", options.worker.served_names);
  add_node_settings(settings, options.node);
  add_join_setting(settings, options.node);
  if (kind == WorkerKind::kDecode) {
    settings.add({.name = "role",
                  .help = "decode: prefill workers compute long prompts; mixed: it computes all",
                  .choices = {"decode", "mixed"}},
                 &options.role);
  }
  settings.add({.name = "drain-seconds",
                .help = "How long a first SIGTERM lets running requests go on",
                .most = 86400},
               &options.drain_seconds);
  settings.add({.name = "metrics-host", .help = "Address to listen on for metrics-port"},
               &options.metrics_host);
  settings.add({.name = "metrics-port", .help = "Port for GET /metrics and /health; 0: none"},
               &options.metrics_port);
}

wire::Role role_of(WorkerKind kind, const Options& options) {
  if (kind == WorkerKind::kPrefill) return wire::Role::kPrefill;
  return options.role == "mixed" ? wire::Role::kMixed : wire::Role::kDecode;
}

std::string joined_router(const Node& node, const std::vector<std::string>& routers) {
  for (const std::string& router : routers)
    if (node.is_joined(router)) return router;
  return "";
}

// Asks the worker's actor; nothing when it does not answer.
template <class Atom>
bool ask(Node& node, const caf::actor& worker, Atom question) {
  bool answer = false;
  caf::scoped_actor self(node.system());
  self->request(worker, kAnswerDeadline, question)
      .receive([&](bool yes) { answer = yes; },
               [&](const caf::error& error) {
                 LOG(WARNING) << "the worker does not answer: " << self->system().render(error);
               });
  return answer;
}

class WorkerProgram {
 public:
  WorkerProgram(Options options, wire::Role role) : options_(std::move(options)) {
    options_.worker.role = role;
  }

  Status run() {
    TROUPE_RETURN_IF_ERROR(complete_node_options(options_.node));
    options_.worker.routers = options_.node.join;
    kj::AsyncIoContext io = kj::setupAsyncIo();
    // What the transport refers to is declared before the node that owns it.
    TROUPE_ASSIGN_OR_RETURN(const auto loaded, LoadedModel::load(options_.worker.engine, clock_));
    LOG(INFO) << loaded->summary();
    ServingMetrics metrics(options_.worker.served_names.empty()
                               ? loaded->name()
                               : options_.worker.served_names.front());
    WorkerParts parts(*loaded, metrics, clock_);
    TROUPE_ASSIGN_OR_RETURN(const auto node, Node::start(options_.node, common_record(), clock_));
    say(kSaysListening, node->address());
    TROUPE_ASSIGN_OR_RETURN(const caf::actor worker, parts.start(*node, options_.worker));
    StatusServer status(*io.lowLevelProvider, io.provider->getTimer(),
                        {[&] { return metrics.serialize(); }, [&] { return health(*node); }, {}});
    if (options_.metrics_port != 0) {
      TROUPE_ASSIGN_OR_RETURN(const uint16_t port,
                              status.listen(options_.metrics_host, options_.metrics_port));
      say(kSaysHttp, options_.metrics_host + ":" + std::to_string(port));
    }
    bool ended = false;
    auto signal =
        on_end_signal(io.unixEventPort).then([&] { ended = true; }).eagerlyEvaluate(nullptr);
    wait_until_joined(*node, io, ended);
    signal.wait(io.waitScope);
    auto second = end_at_once_on_signal(io.unixEventPort).eagerlyEvaluate(nullptr);
    drain(*node, worker, io);
    return ok_status();
  }

 private:
  // Healthy: a router knows of this worker.
  [[nodiscard]] Status health(const Node& node) const {
    if (!joined_router(node, options_.worker.routers).empty()) return ok_status();
    return {StatusCode::kUnavailable, "no router has been joined"};
  }

  void wait_until_joined(const Node& node, kj::AsyncIoContext& io, const bool& ended) const {
    std::string all;
    for (const std::string& router : options_.worker.routers)
      all += (all.empty() ? "" : ", ") + router;
    LOG(INFO) << "waiting for the router: " << all;
    std::string router;
    while (router.empty() && !ended) {
      io.provider->getTimer().afterDelay(kPoll).wait(io.waitScope);
      router = joined_router(node, options_.worker.routers);
    }
    if (ended) return;
    say(kSaysReady, std::string(wire::to_string(options_.worker.role)) + " worker " +
                        node.address() + " has joined " + router);
  }

  void drain(Node& node, const caf::actor& worker, kj::AsyncIoContext& io) const {
    LOG(INFO) << "ending: what runs may finish within " << options_.drain_seconds
              << " s; a second signal ends at once";
    caf::anon_send(worker, DrainAtom::value);
    const TimePoint until = clock_.now() + std::chrono::seconds(options_.drain_seconds);
    while (!ask(node, worker, IdleAtom::value) && clock_.now() < until)
      io.provider->getTimer().afterDelay(kPoll).wait(io.waitScope);
    static_cast<void>(ask(node, worker, LeaveAtom::value));
    // The last messages are on their way; the transport ends them when it is destroyed.
    io.provider->getTimer().afterDelay(kPoll).wait(io.waitScope);
    LOG(INFO) << "ended";
  }

  SystemClock clock_;
  Options options_;
};

}  // namespace

int run_worker_program(WorkerKind kind, int argc, char** argv) {
  const bool prefills = kind == WorkerKind::kPrefill;
  const char* name = prefills ? "troupe-prefill" : "troupe-decode";
  init_program(name);
  Options options;
  Settings settings(prefills ? "prefill" : "decode",
                    prefills ? "Computes prompts for the decode workers of a Troupe cluster"
                             : "Generates tokens as a worker of a Troupe cluster",
                    TROUPE_VERSION);
  declare(kind, settings, options);
  if (const Parsed parsed = settings.parse(argc, argv); !parsed.run) {
    (parsed.exit_code == 0 ? std::cout : std::cerr) << parsed.output;
    return parsed.exit_code;
  }
  const wire::Role role = role_of(kind, options);
  return exit_code_of(name, WorkerProgram(std::move(options), role).run());
}

}  // namespace troupe
