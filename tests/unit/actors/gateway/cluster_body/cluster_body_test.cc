#include "actors/gateway/openai/cluster_body.h"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <limits>

namespace troupe {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

wire::WorkerStatus worker(uint32_t id) {
  wire::WorkerStatus worker;
  worker.worker = WorkerId{id};
  worker.endpoint = "10.0.0.7:7000/worker";
  worker.role = wire::Role::kDecode;
  worker.accepting = true;
  worker.state = "ready";
  worker.incarnation = 0xFEDCBA9876543210;
  worker.requests = 3;
  worker.heard = milliseconds(120);
  worker.model = "0123";
  worker.model_name = "smol";
  worker.load = {2, 1, 900, 4096, 512, 0.00025, 0.0125};
  return worker;
}

BOOST_AUTO_TEST_CASE(an_empty_cluster_says_why_it_cannot_serve) {
  const json body = json::parse(cluster_body({false, "no worker has joined", {}, 0}, {}));
  const json expected = {{"healthy", false},
                         {"reason", "no worker has joined"},
                         {"requests", 0},
                         {"workers", json::array()},
                         {"peers", json::array()}};
  BOOST_TEST(body == expected, body.dump());
}

BOOST_AUTO_TEST_CASE(a_worker_is_shown_with_its_load) {
  const json body = json::parse(cluster_body({true, "", {worker(4), worker(5)}, 6}, {}));
  BOOST_TEST(body["workers"].size() == 2U);
  const json expected = {{"worker", 4},
                         {"endpoint", "10.0.0.7:7000/worker"},
                         {"model", "smol"},
                         {"model_digest", "0123"},
                         {"role", "decode"},
                         {"state", "ready"},
                         {"accepting", true},
                         {"incarnation", "fedcba9876543210"},
                         {"requests", 3},
                         {"heard_ms", 120},
                         {"load",
                          {{"running", 2},
                           {"waiting", 1},
                           {"queued_tokens", 900},
                           {"kv_blocks_total", 4096},
                           {"kv_blocks_used", 512},
                           {"seconds_per_token", 0.00025},
                           {"seconds_per_step", 0.0125}}}};
  BOOST_TEST(body["workers"][0] == expected, body["workers"][0].dump());
}

BOOST_AUTO_TEST_CASE(what_is_not_known_is_null_and_not_zero) {
  wire::WorkerStatus fresh = worker(0);
  fresh.load.seconds_per_token = 0.0;
  fresh.load.seconds_per_step = std::numeric_limits<double>::infinity();
  fresh.heard = milliseconds(-5);
  PeerState peer;
  peer.node = "10.0.0.8:7000";
  const std::vector<PeerState> peers = {peer};
  const json body = json::parse(cluster_body({true, "", {fresh}, 0}, peers));
  BOOST_TEST(body["workers"][0]["load"]["seconds_per_token"].is_null());
  BOOST_TEST(body["workers"][0]["load"]["seconds_per_step"].is_null());
  BOOST_TEST(body["workers"][0]["heard_ms"] == 0);
  BOOST_TEST(body["peers"][0]["round_trip_seconds"].is_null());
  BOOST_TEST(body["peers"][0]["clock_offset_seconds"].is_null());
  BOOST_TEST(body["peers"][0]["clock_uncertainty_seconds"].is_null());
}

BOOST_AUTO_TEST_CASE(a_peer_is_shown_with_its_path) {
  PeerState peer;
  peer.node = "10.0.0.8:7000";
  peer.connected = true;
  peer.incarnation = 1234;
  peer.round_trip = std::chrono::microseconds(250);
  peer.clock_offset = -milliseconds(3);
  peer.clock_uncertainty = std::chrono::microseconds(125);
  peer.messages_sent = 7;
  peer.bytes_received = 8;
  peer.parts_refused = 9;
  peer.transport = "tcp lo";
  const std::vector<PeerState> peers = {peer};
  const json shown = json::parse(cluster_body({true, "", {}, 0}, peers))["peers"][0];
  BOOST_TEST(shown["node"] == "10.0.0.8:7000");
  BOOST_TEST(shown["connected"] == true);
  BOOST_TEST(shown["incarnation"] == "00000000000004d2");
  BOOST_TEST(shown["round_trip_seconds"] == 0.00025);
  BOOST_TEST(shown["clock_offset_seconds"] == -0.003);
  BOOST_TEST(shown["clock_uncertainty_seconds"] == 0.000125);
  BOOST_TEST(shown["messages_sent"] == 7);
  BOOST_TEST(shown["bytes_received"] == 8);
  BOOST_TEST(shown["parts_refused"] == 9);
  BOOST_TEST(shown["transport"] == "tcp lo");
}

BOOST_AUTO_TEST_CASE(texts_of_peers_cannot_break_the_json) {
  wire::WorkerStatus odd = worker(1);
  odd.state = "lost: \"quoted\"\n\xFF\x01";
  odd.endpoint = "a\\b/worker";
  const json body = json::parse(cluster_body({false, "odd \"reason\"", {odd}, 0}, {}));
  BOOST_TEST(body["workers"][0]["state"] == "lost: \"quoted\"\n\xEF\xBF\xBD\x01");
  BOOST_TEST(body["workers"][0]["endpoint"] == "a\\b/worker");
}

}  // namespace
}  // namespace troupe
