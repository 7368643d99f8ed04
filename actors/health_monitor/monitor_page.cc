#include "actors/health_monitor/monitor_page.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <deque>

#include "actors/gateway/openai/cluster_body.h"
#include "actors/gateway/text/escape.h"
#include "engine/tokenizer/detokenizer.h"

namespace troupe {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

std::string json_text(const std::string& text) {
  std::string out;
  append_json_string(out, to_valid_utf8(text));
  return out;
}

const char* to_text(NodeKind kind) {
  return kind == NodeKind::kRouter ? "router" : "worker";
}

std::string age_text(const MonitorView& view, TimePoint since) {
  return std::to_string(
      std::chrono::duration_cast<std::chrono::milliseconds>(view.now - since).count());
}

// The families of one page, in the order of their first mention.
class Page {
 public:
  void gauge(const char* name, const char* help, const Labels& labels, double value) {
    prometheus::ClientMetric metric = labelled(labels);
    metric.gauge.value = value;
    family(name, help, prometheus::MetricType::Gauge).metric.push_back(std::move(metric));
  }
  void counter(const char* name, const char* help, const Labels& labels, double value) {
    prometheus::ClientMetric metric = labelled(labels);
    metric.counter.value = value;
    family(name, help, prometheus::MetricType::Counter).metric.push_back(std::move(metric));
  }
  // A time that may not be known: 0 then.
  void learned(const char* name, const char* help, const Labels& labels, double value) {
    if (value > 0.0) gauge(name, help, labels, value);
  }
  [[nodiscard]] std::string text() const {
    return prometheus::TextSerializer().Serialize({families_.begin(), families_.end()});
  }

 private:
  static prometheus::ClientMetric labelled(const Labels& labels) {
    prometheus::ClientMetric metric;
    for (const auto& [name, value] : labels) metric.label.push_back({name, to_valid_utf8(value)});
    return metric;
  }

  prometheus::MetricFamily& family(const char* name, const char* help,
                                   prometheus::MetricType type) {
    for (prometheus::MetricFamily& family : families_) {
      if (family.name == name) return family;
    }
    prometheus::MetricFamily& family = families_.emplace_back();
    family.name = name;
    family.help = help;
    family.type = type;
    return family;
  }

  std::deque<prometheus::MetricFamily> families_;
};

void add_worker(Page& page, const ObservedWorker& worker, const Labels& labels) {
  const wire::Load& load = worker.status.load;
  page.gauge("troupe_worker_requests", "Requests that routers have in flight at the worker", labels,
             worker.status.requests);
  page.gauge("troupe_worker_running", "Sequences in the worker's batch", labels, load.running);
  page.gauge("troupe_worker_waiting", "Sequences that wait for blocks or a place", labels,
             load.waiting);
  page.gauge("troupe_worker_queued_tokens", "Prompt tokens still to be computed", labels,
             static_cast<double>(load.queued_tokens));
  page.gauge("troupe_worker_kv_blocks_total", "KV blocks of the worker", labels, load.blocks_total);
  page.gauge("troupe_worker_kv_blocks_used", "KV blocks held by sequences or transfers", labels,
             load.blocks_used);
  page.learned("troupe_worker_seconds_per_token", "Learned time to compute one prompt token",
               labels, load.seconds_per_token);
  page.learned("troupe_worker_seconds_per_step", "Learned time of one decode step", labels,
               load.seconds_per_step);
  page.gauge("troupe_worker_heard_seconds", "Time since the worker's last heartbeat", labels,
             seconds(worker.status.heard));
}

void add_nodes(Page& page, const MonitorView& view) {
  for (const ObservedRouter& router : view.routers) {
    const Labels labels = {{"router", router.endpoint}};
    page.gauge("troupe_router_up", "Whether the router answers", labels, is_up(router.state));
    if (!is_up(router.state)) continue;
    page.gauge("troupe_router_can_serve", "Whether the router has workers for requests", labels,
               router.state == NodeState::kReady);
    page.gauge("troupe_router_requests", "Requests that the router has in flight", labels,
               router.requests);
  }
  if (!view.informed()) return;  // nobody tells about workers
  for (const ObservedWorker& worker : view.workers) {
    const Labels labels = {{"worker", worker.status.endpoint},
                           {"role", wire::to_string(worker.status.role)},
                           {"model_name", worker.status.model_name}};
    page.gauge("troupe_worker_up", "Whether the worker is heard and makes progress", labels,
               is_up(worker.state));
    page.gauge("troupe_worker_accepting", "Whether the worker gets new requests", labels,
               worker.state == NodeState::kReady);
    if (is_up(worker.state)) add_worker(page, worker, labels);
  }
  page.gauge("troupe_monitor_workers_left_out", "Workers beyond what the monitor keeps", {},
             view.workers_left_out);
}

void add_peers(Page& page, const MonitorView& view) {
  for (const PeerState& peer : view.peers) {
    const Labels labels = {{"peer", peer.node}, {"transport", peer.transport}};
    page.gauge("troupe_peer_up", "Whether the monitor is connected with the node", labels,
               peer.connected);
    if (!peer.connected || peer.round_trip.count() <= 0) continue;
    page.gauge("troupe_peer_round_trip_seconds", "Round trip between the monitor and the node",
               labels, seconds(peer.round_trip));
    page.gauge("troupe_peer_clock_offset_seconds", "The node's monotonic clock minus the monitor's",
               labels, seconds(peer.clock_offset));
    page.gauge("troupe_peer_clock_uncertainty_seconds", "Bound of the clock offset's error", labels,
               seconds(peer.clock_uncertainty));
  }
}

}  // namespace

std::string transition_line(const Transition& transition) {
  std::string line = std::string(to_text(transition.node_kind)) + " " + transition.endpoint + " " +
                     to_string(transition.kind);
  if (!transition.detail.empty()) line += ": " + transition.detail;
  return printable_excerpt(line, 1024);
}

std::string monitor_cluster_body(const MonitorView& view) {
  wire::Health health;
  health.healthy = view.healthy;
  health.reason = view.reason;
  for (const ObservedRouter& router : view.routers) health.requests += router.requests;
  for (const ObservedWorker& worker : view.workers) health.workers.push_back(worker.status);
  std::string out = "{" + cluster_members(health, view.peers) + ",\"routers\":[";
  const char* between = "";
  for (const ObservedRouter& router : view.routers) {
    out += std::string(between) + "{\"endpoint\":" + json_text(router.endpoint) + ",\"state\":\"" +
           to_string(router.state) + "\",\"detail\":" + json_text(router.detail) +
           ",\"since_ms\":" + age_text(view, router.since) +
           ",\"requests\":" + std::to_string(router.requests) +
           ",\"transitions\":" + std::to_string(router.transitions) + "}";
    between = ",";
  }
  out += "],\"observed\":[";
  between = "";
  for (const ObservedWorker& worker : view.workers) {
    out += std::string(between) + "{\"endpoint\":" + json_text(worker.status.endpoint) +
           ",\"state\":\"" + to_string(worker.state) +
           "\",\"since_ms\":" + age_text(view, worker.since) +
           ",\"transitions\":" + std::to_string(worker.transitions) + "}";
    between = ",";
  }
  out += "],\"transitions\":[";
  between = "";
  for (const Transition& transition : view.recent) {
    out += std::string(between) + "{\"unix_seconds\":" + std::to_string(transition.unix_seconds) +
           ",\"kind\":\"" + to_text(transition.node_kind) +
           "\",\"endpoint\":" + json_text(transition.endpoint) + ",\"transition\":\"" +
           to_string(transition.kind) + "\",\"detail\":" + json_text(transition.detail) + "}";
    between = ",";
  }
  return out + "]}";
}

std::string monitor_metrics_text(const MonitorView& view) {
  Page page;
  for (size_t node = 0; node < view.transitions.size(); ++node) {
    for (size_t kind = 0; kind < kTransitionKinds; ++kind) {
      page.counter("troupe_transitions_total", "Changes of state of the cluster's nodes",
                   {{"node", to_text(static_cast<NodeKind>(node))},
                    {"transition", to_string(static_cast<TransitionKind>(kind))}},
                   static_cast<double>(view.transitions[node][kind]));
    }
  }
  add_nodes(page, view);
  add_peers(page, view);
  return page.text();
}

Status monitor_health(const MonitorView& view) {
  if (view.healthy) return ok_status();
  return {StatusCode::kUnavailable, view.reason.empty() ? "not started yet" : view.reason};
}

}  // namespace troupe
