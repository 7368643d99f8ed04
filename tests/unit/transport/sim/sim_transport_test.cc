#include "transport/sim/sim_transport.h"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <memory>
#include <thread>

#include "base/limits.h"
#include "tests/unit/transport/conformance.h"
#include "transport/session/limits.h"

namespace troupe {
namespace {

using conformance::Collector;
using conformance::Ends;
using conformance::LandingLog;
using conformance::Memory;
using conformance::PeerLog;
using std::chrono::milliseconds;

// Two nodes whose time passes when the test says so.
struct Fixture {
  explicit Fixture(SimNetworkOptions options = {}) : network(events, rng, options) {
    a = std::make_unique<SimTransport>(network, "a:1", 1);
    b = std::make_unique<SimTransport>(network, "b:1", 1);
    a->set_peer_observer(&of_a);
    b->set_peer_observer(&of_b);
    BOOST_REQUIRE(b->bind("x", at_b).ok());
    BOOST_REQUIRE(a->bind("x", at_a).ok());
  }
  ~Fixture() {
    end(a);
    end(b);
  }

  void end(std::unique_ptr<SimTransport>& node) {
    if (node) node->unbind("x");
    node.reset();
  }
  void pass(Duration time) { events.run_until(events.now() + time); }
  void a_says(uint64_t word) { BOOST_TEST(a->send("b:1/x", TrafficClass::kControl, {word}).ok()); }
  void b_says(uint64_t word) { BOOST_TEST(b->send("a:1/x", TrafficClass::kControl, {word}).ok()); }
  void join() {
    a_says(0);
    pass(milliseconds(10));
    BOOST_REQUIRE(at_b.received().size() == 1U);
  }

  EventQueue events;
  SeededRng rng{7};
  SimNetwork network;
  PeerLog of_a, of_b;
  Collector at_a, at_b;
  std::unique_ptr<SimTransport> a, b;
};

// Runs a network's events on a thread of its own, as fast as they come.
class Driver {
 public:
  explicit Driver(EventQueue& events)
      : thread_([this, &events] {
          while (!stop_) {
            if (!events.run_one()) std::this_thread::yield();
          }
        }) {}
  ~Driver() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

BOOST_AUTO_TEST_SUITE(sim_transport)

BOOST_AUTO_TEST_CASE(passes_the_conformance_suite) {
  EventQueue events;
  SeededRng rng(1);
  SimNetwork network(events, rng, {});
  SimTransport a(network, "a:1", 1), b(network, "b:1", 1);
  const Driver driver(events);
  conformance::check_conformance(a, b);
}

BOOST_AUTO_TEST_CASE(passes_the_conformance_suite_with_jitter_and_with_itself) {
  EventQueue events;
  SeededRng rng(2);
  SimNetworkOptions options;
  options.link.jitter_max = milliseconds(3);
  SimNetwork network(events, rng, options);
  SimTransport a(network, "a:1", 1), b(network, "b:1", 1);
  const Driver driver(events);
  conformance::check_conformance(a, b);
  conformance::check_conformance(a, a);
}

BOOST_FIXTURE_TEST_CASE(both_sides_hear_of_a_session_and_of_its_end, Fixture) {
  join();
  BOOST_TEST((of_a.joined() == std::vector<std::string>{"b:1 1"}));
  BOOST_TEST((of_b.joined() == std::vector<std::string>{"a:1 1"}));
  BOOST_TEST(a->peers().at(0).connected);
  end(b);
  pass(milliseconds(10));
  BOOST_TEST(of_a.lost().size() == 1U);
  BOOST_TEST(!a->peers().at(0).connected);
}

BOOST_FIXTURE_TEST_CASE(a_silent_death_is_noticed_within_half_a_second, Fixture) {
  join();
  network.hide_death("b:1");
  end(b);
  pass(limits::kKeepaliveTimeout - limits::kKeepaliveInterval - milliseconds(1));
  BOOST_TEST(of_a.lost().empty());
  pass(milliseconds(150));
  BOOST_TEST(of_a.lost().size() == 1U);
}

BOOST_FIXTURE_TEST_CASE(a_one_way_partition_is_noticed_by_both, Fixture) {
  join();
  network.block("a:1", "b:1");
  a_says(1);
  pass(milliseconds(500));
  BOOST_TEST(of_b.lost().size() == 1U);
  BOOST_TEST(of_a.lost().size() == 1U);  // b told it
  network.unblock("a:1", "b:1");
  pass(milliseconds(100));
  BOOST_TEST(at_b.received().size() == 1U);  // what was under way is gone
  a_says(2);
  pass(milliseconds(100));
  BOOST_TEST(at_b.received().size() == 2U);
  BOOST_TEST(of_a.joined().size() == 2U);
}

BOOST_FIXTURE_TEST_CASE(a_short_clog_delays_and_loses_nothing, Fixture) {
  join();
  network.block("a:1", "b:1");
  for (uint64_t i = 1; i < 5; ++i) a_says(i);
  pass(milliseconds(200));
  BOOST_TEST(at_b.received().size() == 1U);
  network.unblock("a:1", "b:1");
  a_says(5);
  pass(milliseconds(10));
  const auto received = at_b.received();
  BOOST_REQUIRE(received.size() == 6U);
  for (uint64_t i = 0; i < 6; ++i) BOOST_TEST((received[i] == MessageWords{i}));
  pass(milliseconds(1000));
  BOOST_TEST(of_a.lost().empty());
  BOOST_TEST(of_b.lost().empty());
}

BOOST_FIXTURE_TEST_CASE(a_frozen_node_is_lost_and_finds_out_when_it_goes_on, Fixture) {
  join();
  network.freeze("b:1");
  pass(milliseconds(500));
  BOOST_TEST(of_a.lost().size() == 1U);
  BOOST_TEST(of_b.lost().empty());
  network.thaw("b:1");
  pass(milliseconds(10));
  BOOST_TEST(of_b.lost().size() == 1U);
  b_says(1);
  pass(milliseconds(10));
  BOOST_TEST(at_a.received().size() == 1U);
}

BOOST_FIXTURE_TEST_CASE(a_restarted_node_has_another_incarnation, Fixture) {
  join();
  end(b);
  b = std::make_unique<SimTransport>(network, "b:1", 2);
  BOOST_REQUIRE(b->bind("x", at_b).ok());
  pass(milliseconds(10));
  BOOST_TEST(of_a.lost().size() == 1U);
  a_says(1);
  pass(milliseconds(10));
  BOOST_TEST((of_a.joined() == std::vector<std::string>{"b:1 1", "b:1 2"}));
  BOOST_TEST(at_b.received().size() == 2U);
}

BOOST_FIXTURE_TEST_CASE(what_waits_for_a_node_that_is_not_there_is_dropped_in_time, Fixture) {
  Memory memory(*a, 64, 1);
  Ends ends;
  BOOST_TEST(a->send("nowhere:1/x", TrafficClass::kControl, {1}).ok());
  a->move("nowhere:1", {}, TrafficClass::kBulk, {0, {memory.span()}}, ends.done());
  pass(limits::kConnectDeadline + milliseconds(10));
  BOOST_TEST(of_a.lost().size() == 1U);
  BOOST_REQUIRE(ends.all().size() == 1U);
  BOOST_TEST((ends.all()[0].code() == StatusCode::kUnavailable));
}

BOOST_FIXTURE_TEST_CASE(parts_take_the_time_of_their_bytes_and_messages_overtake_them, Fixture) {
  join();
  network.set_link("a:1", "b:1", {milliseconds(1), {}, 1e6});
  Memory source(*a, 200000, 1), target(*b, 200000, 2);
  LandingLog log;
  Ends ends;
  const auto ticket = b->expose({target.span()}, 0, 0, log);
  BOOST_REQUIRE(ticket.ok());
  a->move("b:1", ticket.value(), TrafficClass::kBulk, {0, {source.at(0, 100000)}}, ends.done());
  a->move("b:1", ticket.value(), TrafficClass::kBulk, {100000, {source.at(100000, 100000)}},
          ends.done());
  a_says(1);
  pass(milliseconds(2));
  BOOST_TEST(at_b.received().size() == 2U);
  pass(milliseconds(98));
  BOOST_TEST(log.landed().empty());
  pass(milliseconds(2));
  BOOST_TEST(log.landed().size() == 1U);
  pass(milliseconds(100));
  BOOST_TEST(log.landed().size() == 2U);
  b->retract(ticket->landing);
}

BOOST_FIXTURE_TEST_CASE(a_sender_that_dies_half_way_leaves_its_landing_to_its_owner, Fixture) {
  join();
  network.set_link("a:1", "b:1", {milliseconds(1), {}, 1e6});
  auto source = std::make_unique<Memory>(*a, 100000, 1);
  Memory target(*b, 100000, 2);
  LandingLog log;
  Ends ends;
  const auto ticket = b->expose({target.span()}, 0, 0, log);
  a->move("b:1", ticket.value(), TrafficClass::kBulk, {0, {source->span()}}, ends.done());
  pass(milliseconds(50));
  b->retract(ticket->landing);
  BOOST_TEST(log.retracted().empty());  // it is being written
  network.hide_death("a:1");
  source.reset();
  end(a);
  BOOST_TEST(ends.all().size() == 1U);
  pass(milliseconds(500));
  BOOST_TEST(log.retracted().size() == 1U);
  BOOST_TEST(log.landed().empty());
}

BOOST_AUTO_TEST_CASE(damaged_parts_are_refused_and_doubled_ones_reported_twice) {
  SimNetworkOptions options;
  options.part_damaged = 0.5;
  options.part_doubled = 0.5;
  options.message_doubled = 1.0;
  Fixture world(options);
  world.a_says(0);
  world.pass(milliseconds(10));
  BOOST_TEST(world.at_b.received().size() == 2U);
  Memory source(*world.a, 6400, 1), target(*world.b, 6400, 2);
  LandingLog log;
  Ends ends;
  const auto ticket = world.b->expose({target.span()}, 0, 0, log);
  for (size_t i = 0; i < 100; ++i) {
    world.a->move("b:1", ticket.value(), TrafficClass::kBulk, {64 * i, {source.at(64 * i, 64)}},
                  ends.done());
  }
  world.pass(milliseconds(100));
  BOOST_REQUIRE(ends.all().size() == 100U);
  size_t damaged = 0;
  for (const Status& status : ends.all()) damaged += status.code() == StatusCode::kDataLoss;
  BOOST_TEST(damaged > 25U);
  BOOST_TEST(damaged < 75U);
  BOOST_TEST(log.landed().size() > 100 - damaged);
  BOOST_TEST(world.network.stats().parts_doubled > 10U);
  world.b->retract(ticket->landing);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
