#include "actors/router/router_core.h"

#include <boost/test/unit_test.hpp>

#include "policies/routing/least_loaded.h"
#include "tests/unit/actors/fake_outbox.h"

namespace troupe {
namespace {

constexpr auto kInterval = limits::kHeartbeatInterval;

struct Fixture {
  explicit Fixture(uint32_t in_flight_max = 4)
      : router(clock, outbox, policy,
               {in_flight_max, {{WorkerId(0), "w0"}, {WorkerId(1), "w1"}}, {"g"}}) {}

  void beat(uint32_t worker, uint64_t incarnation = 1, bool stalled = false) {
    router.on_heartbeat({WorkerId(worker), incarnation, stalled, kInterval});
  }
  void accept(uint64_t id, size_t prompt = 3) {
    wire::Request request;
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

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
