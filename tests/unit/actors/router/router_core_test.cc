#include "actors/router/router_core.h"

#include <boost/test/unit_test.hpp>

#include "policies/routing/least_loaded.h"
#include "policies/routing/least_ttft.h"
#include "tests/unit/actors/fake_outbox.h"

namespace troupe {
namespace {

constexpr auto kInterval = limits::kHeartbeatInterval;

struct Fixture {
  explicit Fixture(uint32_t in_flight_max = 4)
      : router(clock, outbox, policy, {in_flight_max, "router", {"g"}}) {}

  static wire::Heartbeat heartbeat(uint32_t worker) {
    wire::Heartbeat heartbeat;
    heartbeat.worker = WorkerId(worker);
    heartbeat.incarnation = 1;
    heartbeat.endpoint = "w" + std::to_string(worker);
    heartbeat.model = "digest";
    return heartbeat;
  }
  void beat(uint32_t worker, uint64_t incarnation = 1, bool stalled = false) {
    wire::Heartbeat message = heartbeat(worker);
    message.incarnation = incarnation;
    message.stalled = stalled;
    message.step_age = kInterval;
    router.on_heartbeat(message);
  }
  void beat_as(uint32_t worker, wire::Role role, wire::Load load = {}) {
    wire::Heartbeat message = heartbeat(worker);
    message.role = role;
    message.load = load;
    router.on_heartbeat(message);
  }
  void beat_model(uint32_t worker, const std::string& model) {
    wire::Heartbeat message = heartbeat(worker);
    message.model = model;
    router.on_heartbeat(message);
  }
  void accept(uint64_t id, size_t prompt = 3) { accept_for(id, "", prompt); }
  void accept_for(uint64_t id, const std::string& model, size_t prompt = 3) {
    wire::Request request;
    request.model = model;
    request.id = RequestId(id);
    request.gateway = "g";
    request.prompt.assign(prompt, 1);
    request.sequences.push_back({SequenceId(id + 1000), {}});
    router.on_accepted({request});
    router.check_invariants();
  }
  // The time passes, worker 1 beats, and the router looks at the clock as often as it should.
  void pass(std::chrono::milliseconds time) {
    for (auto gone = 0 * time; gone < time; gone += kInterval) {
      clock.advance(kInterval);
      beat(1);
      router.on_tick();
    }
  }
  std::vector<wire::Rejected> rejected() const { return outbox.take<wire::Rejected>("g"); }

  ManualClock clock;
  FakeOutbox outbox;
  LeastLoaded policy;
  RouterCore router;
};

BOOST_AUTO_TEST_SUITE(router_core)

BOOST_AUTO_TEST_CASE(a_request_goes_to_one_worker_and_its_place_is_free_when_it_finished) {
  Fixture f;
  f.beat(0);
  f.accept(1);
  const auto routed = f.outbox.take<wire::Routed>("w0");
  BOOST_REQUIRE(routed.size() == 1U);
  BOOST_TEST(routed[0].request.id == RequestId(1));
  BOOST_TEST(routed[0].attempt == 1U);
  BOOST_TEST(f.router.requests_in_flight() == 1U);
  f.router.on_finished({RequestId(1), 7, WorkerId(0)});  // of another attempt: late
  BOOST_TEST(f.router.requests_in_flight() == 1U);
  f.router.on_finished({RequestId(1), 1, WorkerId(0)});
  f.router.on_finished({RequestId(1), 1, WorkerId(0)});  // repeated
  BOOST_TEST(f.router.requests_in_flight() == 0U);
  f.router.check_invariants();
}

BOOST_AUTO_TEST_CASE(requests_spread_over_the_workers) {
  Fixture f;
  f.beat(0);
  f.beat(1);
  for (uint64_t id = 1; id <= 4; ++id) f.accept(id);
  BOOST_TEST(f.outbox.take<wire::Routed>("w0").size() == 2U);
  BOOST_TEST(f.outbox.take<wire::Routed>("w1").size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_repeated_accepted_is_routed_once) {
  Fixture f;
  f.beat(0);
  f.accept(1);
  f.accept(1);
  BOOST_TEST(f.outbox.take<wire::Routed>("w0").size() == 1U);
}

BOOST_AUTO_TEST_CASE(when_all_places_are_taken_the_answer_comes_at_once_with_a_time_to_retry) {
  Fixture f(2);
  f.beat(0);
  for (uint64_t id = 1; id <= 3; ++id) f.accept(id);
  const auto rejected = f.rejected();
  BOOST_REQUIRE(rejected.size() == 1U);
  BOOST_TEST(rejected[0].request == RequestId(3));
  BOOST_TEST((rejected[0].error.code() == StatusCode::kResourceExhausted));
  BOOST_TEST((rejected[0].retry_after.count() >= 1000));
}

BOOST_AUTO_TEST_CASE(without_a_living_worker_a_request_is_rejected_as_unavailable) {
  Fixture f;
  f.accept(1);
  BOOST_REQUIRE(f.rejected().size() == 1U);
  BOOST_TEST((f.rejected()[0].error.code() == StatusCode::kUnavailable));
}

BOOST_AUTO_TEST_CASE(a_worker_that_falls_silent_ends_its_requests_and_no_other) {
  Fixture f;
  f.beat(0);
  f.beat(1);
  f.accept(1);
  f.accept(2);
  f.pass(limits::kHeartbeatTimeout);
  f.beat(1);
  BOOST_TEST(f.rejected().empty());  // not yet over the limit
  f.pass(kInterval);
  f.router.on_tick();
  BOOST_REQUIRE(f.rejected().size() == 1U);
  BOOST_TEST(f.rejected()[0].request == RequestId(1));
  BOOST_TEST(f.router.requests_in_flight() == 1U);
  f.router.check_invariants();
  f.accept(3);  // goes to the one that lives
  BOOST_TEST(f.outbox.take<wire::Routed>("w1").size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_pause_of_the_router_itself_is_no_silence_of_its_workers) {
  Fixture f;
  f.beat(0);
  f.accept(1);
  f.clock.advance(std::chrono::hours(1));  // the process was stopped
  f.router.on_tick();
  BOOST_TEST(f.rejected().empty());
}

BOOST_AUTO_TEST_CASE(a_stalled_worker_ends_its_requests_and_is_told_to_drop_them) {
  Fixture f;
  f.beat(0);
  f.accept(1);
  f.beat(0, 1, true);
  BOOST_TEST(f.rejected().size() == 1U);
  BOOST_TEST(f.outbox.take<wire::Cancelled>("w0").size() == 1U);
  BOOST_TEST(!f.outbox.take<wire::Health>("g").back().healthy);
  f.beat(0, 1, false);  // it came back
  BOOST_TEST(f.outbox.take<wire::Health>("g").back().healthy);
}

BOOST_AUTO_TEST_CASE(a_restarted_worker_has_lost_what_it_was_given) {
  Fixture f;
  f.beat(0, 1);
  f.accept(1);
  f.beat(0, 2);
  BOOST_TEST(f.rejected().size() == 1U);
  BOOST_TEST(f.router.requests_in_flight() == 0U);
  f.accept(2);
  BOOST_TEST(f.outbox.take<wire::Routed>("w0").size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_cancel_reaches_the_worker_and_keeps_the_place_until_it_has_finished) {
  Fixture f;
  f.beat(0);
  f.accept(1);
  f.router.on_cancelled({RequestId(1), {}});
  f.router.on_cancelled({RequestId(99), {}});
  BOOST_TEST(f.outbox.take<wire::Cancelled>("w0").size() == 1U);
  BOOST_TEST(f.router.requests_in_flight() == 1U);
  f.outbox.unreachable.insert("w0");
  f.router.on_cancelled({RequestId(1), {}});
  BOOST_TEST(f.router.requests_in_flight() == 0U);
}

BOOST_AUTO_TEST_CASE(an_unreachable_worker_rejects_the_request) {
  Fixture f;
  f.beat(0);
  f.outbox.unreachable.insert("w0");
  f.accept(1);
  BOOST_TEST(f.rejected().size() == 1U);
  BOOST_TEST(f.router.requests_in_flight() == 0U);
}

BOOST_AUTO_TEST_CASE(gateways_hear_about_health_when_it_changes_and_at_every_tick) {
  Fixture f;
  f.router.on_tick();
  BOOST_TEST(!f.outbox.take<wire::Health>("g").back().healthy);
  BOOST_TEST(!f.outbox.take<wire::Health>("g").back().reason.empty());
  f.beat(0);
  BOOST_TEST(f.outbox.take<wire::Health>("g").back().healthy);
}

BOOST_AUTO_TEST_CASE(a_worker_that_nobody_announced_is_known_by_its_heartbeat) {
  Fixture f;
  f.beat(7);
  f.accept(1);
  const auto routed = f.outbox.take<wire::Routed>("w7");
  BOOST_REQUIRE(routed.size() == 1U);
  BOOST_TEST(routed[0].router == "router");
  BOOST_TEST(routed[0].prefill.empty());
}

BOOST_AUTO_TEST_CASE(a_decode_worker_gets_the_prefill_worker_that_is_free_soonest) {
  Fixture f;
  f.beat_as(0, wire::Role::kDecode);
  wire::Load busy;
  busy.queued_tokens = 1000;
  busy.seconds_per_token = 0.001;
  f.beat_as(1, wire::Role::kPrefill, busy);
  wire::Load slow;
  slow.queued_tokens = 100;
  slow.seconds_per_token = 0.005;
  f.beat_as(2, wire::Role::kPrefill, slow);
  f.accept(1, 400);
  auto routed = f.outbox.take<wire::Routed>("w0");
  BOOST_REQUIRE(routed.size() == 1U);
  BOOST_TEST(routed[0].prefill == "w2");
  BOOST_TEST(routed[0].prefill_wait.count() == 500);
  // What was sent there counts until the next heartbeat says so itself.
  f.accept(2, 400);
  BOOST_TEST(f.outbox.take<wire::Routed>("w0").back().prefill == "w1");
  f.beat_as(2, wire::Role::kPrefill, slow);
  f.accept(3, 400);
  BOOST_TEST(f.outbox.take<wire::Routed>("w0").back().prefill == "w2");
}

BOOST_AUTO_TEST_CASE(
    a_mixed_worker_computes_its_prompts_and_a_prefill_worker_alone_serves_nothing) {
  Fixture f;
  f.beat_as(1, wire::Role::kPrefill);
  BOOST_TEST(!f.router.health().healthy);
  f.accept(1);
  BOOST_TEST(f.rejected().size() == 1U);
  f.beat_as(0, wire::Role::kMixed);
  f.accept(2);
  BOOST_TEST(f.outbox.take<wire::Routed>("w0").back().prefill.empty());
}

BOOST_AUTO_TEST_CASE(a_draining_worker_keeps_what_it_has_and_gets_nothing_new) {
  Fixture f;
  f.beat(0);
  f.accept(1);
  wire::Heartbeat message = Fixture::heartbeat(0);
  message.draining = true;
  f.router.on_heartbeat(message);
  f.accept(2);
  BOOST_TEST(f.router.requests_in_flight() == 1U);
  BOOST_REQUIRE(f.rejected().size() == 1U);
  BOOST_TEST(f.rejected()[0].request == RequestId(2));
  message.left = true;
  f.router.on_heartbeat(message);  // it gave up on what still ran
  BOOST_TEST(f.rejected().size() == 2U);
  BOOST_TEST(f.router.requests_in_flight() == 0U);
}

BOOST_AUTO_TEST_CASE(a_request_goes_to_workers_of_its_model_alone) {
  Fixture f(8);
  f.beat(0);
  f.beat_model(1, "another");
  for (uint64_t id = 1; id <= 3; ++id) f.accept_for(id, "another");
  f.accept_for(4, "digest");
  BOOST_TEST(f.outbox.take<wire::Routed>("w1").size() == 3U);
  const auto routed = f.outbox.take<wire::Routed>("w0");
  BOOST_REQUIRE(routed.size() == 1U);
  BOOST_TEST(routed[0].request.id == RequestId(4));
  BOOST_TEST(routed[0].request.model == "digest");
}

BOOST_AUTO_TEST_CASE(a_request_without_a_model_is_for_the_only_one) {
  Fixture f;
  f.beat(0);
  f.accept(1);
  BOOST_TEST(f.outbox.take<wire::Routed>("w0")[0].request.model == "digest");
  f.beat_model(1, "another");
  f.accept(2);
  BOOST_REQUIRE(f.rejected().size() == 1U);
  BOOST_TEST((f.rejected()[0].error.code() == StatusCode::kNotFound));
}

BOOST_AUTO_TEST_CASE(a_model_whose_workers_are_lost_is_unavailable_while_the_other_serves) {
  Fixture f;
  f.beat(0);
  f.beat_model(1, "another");
  f.router.on_peer_lost("", "silent");
  f.beat(0);
  BOOST_TEST(f.router.health().healthy);
  f.accept_for(1, "another");
  BOOST_REQUIRE(f.rejected().size() == 1U);
  BOOST_TEST((f.rejected()[0].error.code() == StatusCode::kUnavailable));
  BOOST_TEST(f.rejected()[0].error.message().find("w1") != std::string::npos);
  BOOST_TEST(f.rejected()[0].error.message().find("w0") == std::string::npos);
  BOOST_TEST((f.rejected()[0].retry_after.count() > 0));
  f.accept_for(2, "digest");
  BOOST_TEST(f.outbox.take<wire::Routed>("w0").size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_prefill_worker_of_another_model_is_never_named) {
  Fixture f;
  f.beat_as(0, wire::Role::kDecode);
  wire::Heartbeat other = Fixture::heartbeat(1);
  other.role = wire::Role::kPrefill;
  other.model = "another";
  f.router.on_heartbeat(other);
  f.accept_for(1, "digest", 4000);
  const auto routed = f.outbox.take<wire::Routed>("w0");
  BOOST_REQUIRE(routed.size() == 1U);
  BOOST_TEST(routed[0].prefill.empty());
  // It alone cannot decode its own model.
  f.accept_for(2, "another");
  BOOST_TEST(f.rejected().size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_worker_that_stores_kv_otherwise_than_its_models_others_is_refused) {
  Fixture f;
  f.beat(0);
  wire::Heartbeat other = Fixture::heartbeat(1);
  other.kv_type = KvType::kInt8;
  other.model_name = "smol";
  f.router.on_heartbeat(other);
  const auto refused = f.outbox.take<wire::Refused>("w1");
  BOOST_REQUIRE(refused.size() == 1U);
  BOOST_TEST(refused[0].reason ==
             "worker w1 stores KV of smol in int8, w0 in f16: start all workers of a model with "
             "the same --kv-cache-dtype");
  BOOST_TEST(f.router.health().workers.size() == 1U);
  // That of another model is its own business.
  other.model = "another";
  f.router.on_heartbeat(other);
  BOOST_TEST(f.router.health().workers.size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_model_changes_how_it_stores_kv_when_its_former_workers_are_gone) {
  Fixture f;
  wire::Heartbeat former = Fixture::heartbeat(0);
  f.router.on_heartbeat(former);
  wire::Heartbeat other = Fixture::heartbeat(1);
  other.kv_type = KvType::kInt8;
  f.router.on_heartbeat(other);
  BOOST_TEST(f.outbox.take<wire::Refused>("w1").size() == 1U);
  former.left = true;
  f.router.on_heartbeat(former);
  f.router.on_heartbeat(other);
  BOOST_TEST(f.router.health().workers.back().accepting);
  // Its next life at the old place has to follow.
  former.left = false;
  former.incarnation = 2;
  f.router.on_heartbeat(former);
  BOOST_TEST(f.outbox.take<wire::Refused>("w0").size() == 1U);
  BOOST_TEST(!f.router.health().workers.front().accepting);
  former.kv_type = KvType::kInt8;
  f.router.on_heartbeat(former);
  BOOST_TEST(f.router.health().workers.front().accepting);
}

BOOST_AUTO_TEST_CASE(a_worker_that_changes_its_model_in_one_life_is_refused) {
  Fixture f;
  f.beat(0);
  f.beat_model(0, "another");
  BOOST_TEST(f.outbox.take<wire::Refused>("w0").size() == 1U);
  wire::Heartbeat reborn = Fixture::heartbeat(0);
  reborn.model = "another";
  reborn.incarnation = 2;
  f.router.on_heartbeat(reborn);
  f.accept_for(1, "another");
  BOOST_TEST(f.outbox.take<wire::Routed>("w0").size() == 1U);
}

BOOST_AUTO_TEST_CASE(reports_name_each_workers_model) {
  Fixture f;
  wire::Heartbeat message = Fixture::heartbeat(3);
  message.model_name = "smol";
  f.router.on_heartbeat(message);
  BOOST_TEST(f.router.health().workers[0].model == "digest");
  BOOST_TEST(f.router.health().workers[0].model_name == "smol");
}

BOOST_AUTO_TEST_CASE(two_workers_of_one_name_are_not_mixed_up) {
  Fixture f;
  f.beat(0);
  wire::Heartbeat other = Fixture::heartbeat(0);
  other.endpoint = "elsewhere";
  f.router.on_heartbeat(other);
  BOOST_TEST(f.outbox.take<wire::Refused>("elsewhere").size() == 1U);
  f.accept(1);
  BOOST_TEST(f.outbox.take<wire::Routed>("w0").size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_lost_node_takes_its_workers_along_until_they_are_heard_of_again) {
  Fixture f;
  wire::Heartbeat remote = Fixture::heartbeat(0);
  remote.endpoint = "10.0.0.7:7000/worker";
  f.router.on_heartbeat(remote);
  f.beat(1);
  f.accept(1);
  f.accept(2);
  f.router.on_peer_lost("10.0.0.7:7000", "silent");
  BOOST_REQUIRE(f.rejected().size() == 1U);
  BOOST_TEST(f.rejected()[0].request == RequestId(1));
  BOOST_TEST(!f.router.health().workers[0].accepting);
  f.router.check_invariants();
  f.router.on_heartbeat(remote);
  BOOST_TEST(f.router.health().workers[0].accepting);
}

BOOST_AUTO_TEST_CASE(a_worker_lost_for_long_is_forgotten) {
  Fixture f;
  f.beat(0);
  f.beat(1);
  f.pass(limits::kHeartbeatTimeout + 2 * kInterval);
  BOOST_TEST(f.router.health().workers.size() == 2U);
  BOOST_TEST(f.router.health().workers[0].state.find("lost") == 0U);
  f.pass(limits::kLostWorkerKept);
  BOOST_TEST(f.router.health().workers.size() == 1U);
}

BOOST_AUTO_TEST_CASE(an_observer_hears_of_health_while_it_asks) {
  Fixture f;
  f.beat(0);
  f.router.on_observe({"monitor"});
  f.router.on_tick();
  const auto told = f.outbox.take<wire::Health>("monitor");
  BOOST_REQUIRE(told.size() == 1U);
  BOOST_REQUIRE(told[0].workers.size() == 1U);
  BOOST_TEST(told[0].workers[0].endpoint == "w0");
  f.pass(limits::kHeartbeatTimeout + 2 * kInterval);
  const size_t so_far = f.outbox.take<wire::Health>("monitor").size();
  f.pass(kInterval);
  BOOST_TEST(f.outbox.take<wire::Health>("monitor").size() == so_far);
}

BOOST_AUTO_TEST_CASE(a_conversation_stays_where_its_prefix_is_and_moves_when_that_worker_is_lost) {
  ManualClock clock;
  FakeOutbox outbox;
  const LeastTtft policy;
  RouterCore router(clock, outbox, policy, {64, "router", {}});
  const auto beat = [&](uint32_t worker, uint64_t incarnation) {
    wire::Heartbeat message = Fixture::heartbeat(worker);
    message.incarnation = incarnation;
    message.load.blocks_total = 1000;
    router.on_heartbeat(message);
  };
  const auto accept = [&](uint64_t id, size_t prompt) {
    wire::Request request;
    request.id = RequestId(id);
    request.gateway = "g";
    for (size_t i = 0; i < prompt; ++i) request.prompt.push_back(static_cast<TokenId>(i));
    request.sequences.push_back({SequenceId(id + 1000), {}});
    router.on_accepted({request});
    router.check_invariants();
  };
  const auto routed = [&outbox](const char* worker) {
    return outbox.take<wire::Routed>(worker).size();
  };
  const auto both_idle = [&](uint64_t incarnation) {
    beat(0, incarnation);
    beat(1, 1);
  };
  both_idle(1);
  accept(1, 100);
  router.on_finished({RequestId(1), 1, WorkerId(0)});
  both_idle(1);
  accept(2, 200);
  both_idle(1);
  accept(3, 300);
  BOOST_TEST(routed("w0") == 3U);
  both_idle(2);  // another life of the first one: its cache is gone
  accept(4, 300);
  BOOST_TEST(routed("w0") == 4U);  // of equals the lowest id
  router.on_finished({RequestId(4), 1, WorkerId(0)});
  router.on_peer_lost("", "silent");  // both: neither has a node
  beat(1, 1);
  accept(5, 300);
  both_idle(2);
  accept(6, 300);
  BOOST_TEST(routed("w1") == 2U);
  both_idle(2);
  accept(7, 300);
  both_idle(2);
  accept(8, 300);  // the other one has three by now: too busy for that to count
  BOOST_TEST(routed("w1") == 3U);
  BOOST_TEST(routed("w0") == 5U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
