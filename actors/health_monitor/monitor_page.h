#pragma once
// What a health monitor shows: pure functions of its view.

#include <string>

#include "actors/health_monitor/monitor_view.h"
#include "troupe/status.h"

namespace troupe {

// "worker 10.0.0.7:7000/worker lost: not heard of for 3000 ms"; one line without its end.
[[nodiscard]] std::string transition_line(const Transition& transition);

// GET /cluster: the members that a router's answer has (gateway/openai/cluster_body.h), and
// "routers", "observed" (state, since, transitions of each worker) and "transitions" (the latest).
[[nodiscard]] std::string monitor_cluster_body(const MonitorView& view);

// GET /metrics: Prometheus' text format. What is not known now is absent, not zero.
[[nodiscard]] std::string monitor_metrics_text(const MonitorView& view);

// GET /health: ok while some router can serve.
[[nodiscard]] Status monitor_health(const MonitorView& view);

}  // namespace troupe
