#include "apps/troupe/top_table.h"

#include <boost/test/unit_test.hpp>

#include "actors/gateway/openai/cluster_body.h"
#include "actors/health_monitor/monitor_page.h"

namespace troupe {
namespace {

wire::WorkerStatus worker(const std::string& endpoint, wire::Role role) {
  wire::WorkerStatus status;
  status.endpoint = endpoint;
  status.role = role;
  status.accepting = true;
  status.state = "ready";
  status.requests = 3;
  status.heard = std::chrono::milliseconds(150);
  status.load = {2, 1, 900, 1000, 250, 0.00025, 0.0125};
  return status;
}

std::string drawn(const std::string& body) {
  const auto lines = top_table("http://h:1", body);
  BOOST_REQUIRE_MESSAGE(lines.ok(), lines.status().message());
  std::string out;
  for (const std::string& line : lines.value()) out += line + "\n";
  return out;
}

BOOST_AUTO_TEST_CASE(workers_stand_in_aligned_columns_with_totals) {
  wire::WorkerStatus lost = worker("10.0.0.12:7000/worker", wire::Role::kPrefill);
  lost.accepting = false;
  lost.state = "lost: not heard of for 3000 ms";
  lost.heard = std::chrono::minutes(3);
  PeerState peer;
  peer.node = "10.0.0.7:7000";
  peer.round_trip = std::chrono::microseconds(180);
  const std::vector<PeerState> peers = {peer};
  const wire::Health health{
      true, "", {worker("10.0.0.7:7000/worker", wire::Role::kDecode), lost}, 6};
  BOOST_TEST(
      drawn(cluster_body(health, peers)) ==
      "http://h:1   ready   6 requests   1 of 2 workers take requests\n"
      "\n"
      "WORKER                 ROLE     STATE  REQ  RUN  WAIT  QUEUED             KV USED     STEP"
      "   TOKEN     HEARD     RTT\n"
      "10.0.0.7:7000/worker   decode   ready    3    2     1     900  [###.......]  25 %  12.5 ms"
      "  250 us  150.0 ms  180 us\n"
      "10.0.0.12:7000/worker  prefill  lost     3    -     -       -                   -        -"
      "       -     3 min       -\n"
      "total                                    6    2     1     900  [###.......]  25 %\n"
      "\n"
      "10.0.0.12:7000/worker lost: not heard of for 3000 ms\n");
}

BOOST_AUTO_TEST_CASE(workers_of_several_models_say_which_one_they_have) {
  wire::WorkerStatus one = worker("10.0.0.7:7000/worker", wire::Role::kDecode);
  one.model_name = "smol";
  wire::WorkerStatus two = worker("10.0.0.8:7000/worker", wire::Role::kDecode);
  two.model_name = "gemma";
  const std::string text = drawn(cluster_body({true, "", {one, two}, 0}, {}));
  BOOST_TEST(text.find("WORKER (MODEL)") != std::string::npos, text);
  BOOST_TEST(text.find("10.0.0.8:7000/worker (gemma)") != std::string::npos, text);
}

BOOST_AUTO_TEST_CASE(a_cluster_that_cannot_serve_says_why) {
  const std::string text = drawn(cluster_body({false, "no decode worker is ready", {}, 0}, {}));
  BOOST_TEST(text.starts_with("http://h:1   cannot serve: no decode worker is ready   0 requests"
                              "   0 of 0 workers take requests\n"),
             text);
}

BOOST_AUTO_TEST_CASE(a_monitor_shows_its_routers_and_the_latest_transitions) {
  MonitorView view;
  view.now = TimePoint{} + std::chrono::seconds(90);
  view.routers.push_back({"r:7000/router", NodeState::kReady, "", TimePoint{}, 1, 4});
  for (int i = 0; i < 7; ++i) {
    view.recent.push_back({NodeKind::kWorker,
                           TransitionKind::kLost,
                           "w" + std::to_string(i) + "/worker",
                           i == 6 ? "silent" : "",
                           {},
                           0});
  }
  const std::string text = drawn(monitor_cluster_body(view));
  BOOST_TEST(
      text.find("ROUTER         STATE  REQUESTS   SINCE  TRANSITIONS\n"
                "r:7000/router  ready         4  90.0 s            1\n") != std::string::npos,
      text);
  BOOST_TEST(text.ends_with("LATEST TRANSITIONS\nworker w2/worker lost\nworker w3/worker lost\n"
                            "worker w4/worker lost\nworker w5/worker lost\n"
                            "worker w6/worker lost: silent\n"),
             text);
}

BOOST_AUTO_TEST_CASE(texts_of_the_answer_cannot_drive_the_terminal) {
  wire::WorkerStatus odd = worker("\x1b[2J/worker", wire::Role::kMixed);
  odd.state = std::string(500, 'x');
  const std::string text = drawn(cluster_body({true, "", {odd}, 0}, {}));
  BOOST_TEST(text.find('\x1b') == std::string::npos, text);
  BOOST_TEST(text.find("\\x1b[2J/worker") != std::string::npos, text);
  BOOST_TEST(text.find(std::string(60, 'x')) == std::string::npos, text);
}

BOOST_AUTO_TEST_CASE(an_answer_with_gaps_is_drawn_with_dashes) {
  const std::string text = drawn(R"({"workers":[{}, {"endpoint":5,"load":[]}, 7]})");
  BOOST_TEST(text.find("cannot serve: -") != std::string::npos, text);
  BOOST_TEST(text.find("0 of 3 workers") != std::string::npos, text);
}

BOOST_AUTO_TEST_CASE(what_is_no_answer_of_ours_is_refused) {
  for (const char* body :
       {"", "{}", "[]", "<html>", "{\"workers\":3}", "{\"workers\":[", "\xFF\xFE"}) {
    const auto lines = top_table("http://h:1", body);
    BOOST_TEST(!lines.ok(), body);
    BOOST_TEST((lines.status().message() ==
                "http://h:1/cluster is not the answer of a Troupe router or monitor"));
  }
}

}  // namespace
}  // namespace troupe
