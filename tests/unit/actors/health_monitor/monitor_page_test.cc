#include "actors/health_monitor/monitor_page.h"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "tests/unit/actors/health_monitor/monitor_fixture.h"

namespace troupe {
namespace {

using nlohmann::json;

bool has(const std::string& text, const std::string& line) {
  return text.find(line + "\n") != std::string::npos;
}

PeerState peer() {
  PeerState peer;
  peer.node = "r:7000";
  peer.connected = true;
  peer.round_trip = std::chrono::microseconds(250);
  peer.clock_offset = -std::chrono::milliseconds(2);
  peer.clock_uncertainty = std::chrono::microseconds(125);
  peer.transport = "tcp lo";
  return peer;
}

BOOST_FIXTURE_TEST_CASE(metrics_show_workers_routers_peers_and_transitions, MonitorFixture) {
  wire::WorkerStatus busy = worker();
  busy.load = {1, 4, 900, 100, 25, 0.0005, 0.0};
  hear(0, {busy});
  monitor.on_peers({peer()});
  const std::string text = monitor_metrics_text(monitor.view());
  const std::string labels = "{worker=\"w:7000/worker\",role=\"decode\",model_name=\"\"} ";
  for (const std::string& line :
       {"troupe_worker_up" + labels + "1", "troupe_worker_accepting" + labels + "1",
        "troupe_worker_requests" + labels + "2", "troupe_worker_waiting" + labels + "4",
        "troupe_worker_queued_tokens" + labels + "900",
        "troupe_worker_kv_blocks_total" + labels + "100",
        "troupe_worker_kv_blocks_used" + labels + "25",
        "troupe_worker_seconds_per_token" + labels + "0.0005",
        std::string("troupe_router_up{router=\"r:7000/router\"} 1"),
        std::string("troupe_router_up{router=\"s:7000/router\"} 0"),
        std::string("troupe_router_requests{router=\"r:7000/router\"} 5"),
        std::string("troupe_transitions_total{node=\"worker\",transition=\"joined\"} 1"),
        std::string("troupe_transitions_total{node=\"worker\",transition=\"lost\"} 0"),
        std::string("# TYPE troupe_transitions_total counter"),
        std::string("troupe_peer_round_trip_seconds{peer=\"r:7000\",transport=\"tcp lo\"} "
                    "0.00025"),
        std::string("troupe_peer_clock_offset_seconds{peer=\"r:7000\",transport=\"tcp lo\"} "
                    "-0.002")}) {
    BOOST_TEST(has(text, line), text << " lacks " << line);
  }
  BOOST_TEST(text.find("troupe_worker_seconds_per_step") == std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(what_is_not_known_is_absent_from_the_metrics, MonitorFixture) {
  hear(0, {worker()});
  PeerState away = peer();
  away.connected = false;
  monitor.on_peers({away});
  wait(limits::kHeartbeatTimeout + 2 * limits::kHeartbeatInterval);
  const std::string text = monitor_metrics_text(monitor.view());
  BOOST_TEST(text.find("troupe_worker_") == std::string::npos, text);
  BOOST_TEST(text.find("troupe_router_requests") == std::string::npos, text);
  BOOST_TEST(text.find("troupe_peer_round_trip_seconds") == std::string::npos, text);
  BOOST_TEST(has(text, "troupe_peer_up{peer=\"r:7000\",transport=\"tcp lo\"} 0"), text);
}

BOOST_FIXTURE_TEST_CASE(a_lost_worker_is_down_and_has_no_load, MonitorFixture) {
  hear(0, {worker(), worker("ready", "b/worker")});
  hear(0, {worker("lost: silent"), worker("ready", "b/worker")});
  const std::string text = monitor_metrics_text(monitor.view());
  BOOST_TEST(
      has(text, "troupe_worker_up{worker=\"w:7000/worker\",role=\"decode\",model_name=\"\"} 0"),
      text);
  BOOST_TEST(text.find("troupe_worker_running{worker=\"w:7000") == std::string::npos, text);
  BOOST_TEST(
      has(text, "troupe_worker_running{worker=\"b/worker\",role=\"decode\",model_name=\"\"} 0"),
      text);
}

BOOST_FIXTURE_TEST_CASE(the_cluster_page_is_json_with_history, MonitorFixture) {
  hear(0, {worker()});
  clock.advance(std::chrono::milliseconds(1500));
  hear(0, {worker("stalled")});
  monitor.on_peers({peer()});
  const json body = json::parse(monitor_cluster_body(monitor.view()));
  BOOST_TEST(body["healthy"] == false);
  BOOST_TEST(body["requests"] == 5);
  BOOST_TEST(body["workers"][0]["state"] == "stalled");
  BOOST_TEST(body["peers"][0]["node"] == "r:7000");
  BOOST_TEST(body["routers"].size() == 2U);
  BOOST_TEST(body["routers"][0]["state"] == "unable");
  BOOST_TEST(body["routers"][1]["state"] == "unheard");
  BOOST_TEST(body["routers"][1]["since_ms"] == 1500);
  BOOST_TEST(body["observed"][0]["transitions"] == 2);
  BOOST_TEST(body["observed"][0]["since_ms"] == 0);
  BOOST_TEST(body["transitions"].size() == 4U);
  BOOST_TEST(body["transitions"][3]["transition"] == "stalled");
  BOOST_TEST(body["transitions"][3]["endpoint"] == kWorker);
}

BOOST_FIXTURE_TEST_CASE(health_follows_the_routers, MonitorFixture) {
  BOOST_TEST(!monitor_health(monitor.view()).ok());
  BOOST_TEST(!monitor_health(MonitorView{}).message().empty());
  hear(0, {worker()});
  BOOST_TEST(monitor_health(monitor.view()).ok());
  hear(0, {worker("stalled")});
  BOOST_TEST(monitor_health(monitor.view()).message().find("no worker is ready") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_transition_is_one_line_whatever_its_texts_hold) {
  Transition transition;
  transition.node_kind = NodeKind::kWorker;
  transition.kind = TransitionKind::kLost;
  transition.endpoint = "w:7000/worker";
  transition.detail = "two\nlines\xFF";
  BOOST_TEST(transition_line(transition) == "worker w:7000/worker lost: two\\x0alines\\xff");
}

}  // namespace
}  // namespace troupe
