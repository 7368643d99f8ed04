// troupe-monitor: watches the routers and workers of a cluster. It takes no part in serving, and
// nothing depends on it.

#include <glog/logging.h>
#include <kj/async-io.h>
#include <caf/send.hpp>

#include <iostream>
#include <memory>
#include <mutex>

#include "actors/health_monitor/health_monitor_actor.h"
#include "actors/health_monitor/monitor_page.h"
#include "apps/node/endpoints.h"
#include "apps/node/node.h"
#include "apps/node/node_options.h"
#include "apps/node/program.h"
#include "apps/node/status_server.h"
#include "apps/node/supervisor.h"
#include "base/os/system_clock.h"

namespace troupe {
namespace {

constexpr const char* kProgram = "troupe-monitor";

struct Options {
  NodeOptions node;
  std::string http_host = "127.0.0.1";
  uint16_t http_port = 9100;
};

void declare(Settings& settings, Options& options) {
  add_join_setting(settings, options.node);
  add_node_settings(settings, options.node);
  settings.add({.name = "http-host", .help = "Address to listen on for http-port"},
               &options.http_host);
  settings.add(
      {.name = "http-port", .help = "Port for GET /metrics, /health and /cluster; 0: any free one"},
      &options.http_port);
}

// The newest view, from the actor's thread to the loop's.
class LatestView final : public MonitorViewSink {
 public:
  void on_view(MonitorView view) override {
    auto fresh = std::make_shared<const MonitorView>(std::move(view));
    const std::lock_guard lock(mutex_);
    view_.swap(fresh);
  }
  [[nodiscard]] std::shared_ptr<const MonitorView> get() const {
    const std::lock_guard lock(mutex_);
    return view_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const MonitorView> view_ = std::make_shared<const MonitorView>();
};

// The actor and what feeds it; ends both when destroyed, which must be before the node.
class Monitor final {
 public:
  Monitor(Node& node, const std::vector<std::string>& routers, const Clock& clock,
          MonitorViewSink& sink)
      : node_(node) {
    std::vector<MonitoredRouter> observed;
    for (size_t i = 0; i < routers.size(); ++i) {
      observed.push_back(
          {routers[i] + "/" + kRouterEndpoint, node.transport().address_of(answer_endpoint(i))});
    }
    actor_ = spawn_health_monitor(node.system(), clock, node.outbox(), node.transport(), sink,
                                  std::move(observed));
  }
  ~Monitor() {
    for (size_t i = 0; i < inboxes_.size(); ++i) node_.transport().unbind(answer_endpoint(i));
    caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown);
  }
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  Status bind(size_t routers) {
    for (size_t i = 0; i < routers; ++i) {
      auto inbox = std::make_unique<RouterAnswerInbox>(actor_, i);
      TROUPE_RETURN_IF_ERROR(node_.transport().bind(answer_endpoint(i), *inbox));
      inboxes_.push_back(std::move(inbox));
    }
    return ok_status();
  }

 private:
  static std::string answer_endpoint(size_t router) {
    return "monitor" + (router == 0 ? "" : std::to_string(router));
  }

  Node& node_;
  caf::actor actor_;
  std::vector<std::unique_ptr<RouterAnswerInbox>> inboxes_;
};

Status run(Options options) {
  if (options.node.join.size() > kObservedRoutersMax) {
    return invalid_argument("join names " + std::to_string(options.node.join.size()) +
                            " routers; one monitor observes at most " +
                            std::to_string(kObservedRoutersMax));
  }
  const SystemClock clock;
  TROUPE_RETURN_IF_ERROR(complete_node_options(options.node));
  kj::AsyncIoContext io = kj::setupAsyncIo();
  LatestView latest;
  TROUPE_ASSIGN_OR_RETURN(const auto node, Node::start(options.node, common_record(), clock));
  say(kSaysListening, node->address());
  Monitor monitor(*node, options.node.join, clock, latest);
  TROUPE_RETURN_IF_ERROR(monitor.bind(options.node.join.size()));
  node->watch_peers();
  StatusServer status(*io.lowLevelProvider, io.provider->getTimer(),
                      {[&] { return monitor_metrics_text(*latest.get()); },
                       [&] { return monitor_health(*latest.get()); },
                       [&] { return monitor_cluster_body(*latest.get()); }});
  TROUPE_ASSIGN_OR_RETURN(const uint16_t port, status.listen(options.http_host, options.http_port));
  const std::string address = options.http_host + ":" + std::to_string(port);
  say(kSaysHttp, address);
  say(kSaysReady, "curl http://" + address + "/cluster");
  on_end_signal(io.unixEventPort).wait(io.waitScope);
  LOG(INFO) << "ended";
  return ok_status();
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  using namespace troupe;
  init_program(kProgram);
  Options options;
  Settings settings("monitor", "Watches the routers and workers of a Troupe cluster",
                    TROUPE_VERSION);
  declare(settings, options);
  if (const Parsed parsed = settings.parse(argc, argv); !parsed.run) {
    (parsed.exit_code == 0 ? std::cout : std::cerr) << parsed.output;
    return parsed.exit_code;
  }
  return exit_code_of(kProgram, run(std::move(options)));
}
