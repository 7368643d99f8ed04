#include "transport/fault/fault_transport.h"

#include <boost/test/unit_test.hpp>

#include "tests/unit/transport/conformance.h"
#include "transport/loopback/loopback_transport.h"

namespace troupe::conformance {
namespace {

using std::chrono::milliseconds;

// Loopback with faults, and a clock that a test moves.
struct World {
  explicit World(const FaultPlan& plan) : fault(loopback, plan, clock) {
    BOOST_REQUIRE(fault.bind("x", collector).ok());
  }
  ~World() { fault.unbind("x"); }
  void send(uint64_t messages) {
    for (uint64_t i = 0; i < messages; ++i) {
      BOOST_TEST(fault.send("x", TrafficClass::kControl, {i, i}).ok());
    }
  }
  void pass(milliseconds time) {
    clock.advance(time);
    fault.release_due();
  }
  ManualClock clock;
  LoopbackTransport loopback;
  FaultTransport fault;
  Collector collector;
};

BOOST_AUTO_TEST_SUITE(fault_transport)

BOOST_AUTO_TEST_CASE(passes_the_conformance_suite_without_faults) {
  const ManualClock clock;
  LoopbackTransport loopback;
  FaultTransport fault(loopback, {}, clock);
  check_conformance(fault, fault);
  BOOST_TEST((fault.counts() == FaultCounts{}));
}

BOOST_AUTO_TEST_CASE(loses_repeats_and_damages_messages_as_often_as_planned) {
  World world({.seed = 1, .lose_message = 0.1, .repeat_message = 0.2, .damage_message = 0.3});
  world.send(10000);
  const FaultCounts counts = world.fault.counts();
  BOOST_TEST((counts.lost > 900U && counts.lost < 1100U), counts.lost);
  BOOST_TEST((counts.repeated > 1650U && counts.repeated < 1950U), counts.repeated);
  BOOST_TEST((counts.damaged > 2500U && counts.damaged < 2900U), counts.damaged);
  const auto received = world.collector.received();
  BOOST_TEST(received.size() == 10000U - counts.lost + counts.repeated);
  size_t damaged = 0;
  for (const MessageWords& words : received) {
    const uint64_t difference = words[0] ^ words[1];
    damaged += difference != 0 ? 1 : 0;
    BOOST_TEST((difference & (difference - 1)) == 0U);  // one bit
  }
  BOOST_TEST((damaged >= counts.damaged));
}

BOOST_AUTO_TEST_CASE(the_same_seed_goes_wrong_in_the_same_way) {
  const auto received = [](uint64_t seed) {
    World world({.seed = seed,
                 .lose_message = 0.2,
                 .repeat_message = 0.2,
                 .damage_message = 0.2,
                 .delay_message = 0.2,
                 .delay_max = milliseconds(10)});
    for (int i = 0; i < 20; ++i) {
      world.send(10);
      world.pass(milliseconds(3));
    }
    world.pass(milliseconds(100));
    return world.collector.received();
  };
  BOOST_TEST((received(7) == received(7)));
  BOOST_TEST((received(7) != received(8)));
}

BOOST_AUTO_TEST_CASE(delayed_messages_keep_their_order_and_come_when_due) {
  World world({.seed = 2, .delay_message = 0.05, .delay_max = milliseconds(50)});
  for (int i = 0; i < 100; ++i) {
    world.send(1);
    const auto next = world.fault.next_due();
    BOOST_TEST((!next || *next <= world.clock.now() + milliseconds(50)));
    world.pass(milliseconds(1));
  }
  BOOST_TEST(world.collector.received().size() < 100U);
  world.pass(milliseconds(50));
  BOOST_TEST(world.collector.received().size() == 100U);
  BOOST_TEST(!world.fault.next_due().has_value());

  World burst({.seed = 3, .delay_message = 0.3, .delay_max = milliseconds(50)});
  burst.send(100);
  for (int i = 0; i < 60; ++i) burst.pass(milliseconds(1));
  const auto received = burst.collector.received();
  BOOST_REQUIRE(received.size() == 100U);
  for (uint64_t i = 0; i < 100; ++i) BOOST_TEST(received[i][0] == i);
}

BOOST_AUTO_TEST_CASE(parts_end_once_whatever_happens_to_them) {
  World world({.seed = 4,
               .damage_part = 0.2,
               .repeat_part = 0.2,
               .delay_part = 0.5,
               .delay_max = milliseconds(20)});
  Memory source(world.fault, 6400, 1), target(world.fault, 6400, 2);
  LandingLog log;
  Ends ends;
  const auto ticket = world.fault.expose({target.span()}, 0, 0, log);
  BOOST_REQUIRE(ticket.ok());
  for (size_t i = 0; i < 100; ++i) {
    world.fault.move("", ticket.value(), TrafficClass::kBulk, {i * 64, {source.at(i * 64, 64)}},
                     ends.done());
  }
  BOOST_TEST(ends.all().size() < 100U);
  world.pass(milliseconds(20));
  const auto all = ends.all();
  BOOST_TEST(all.size() == 100U);
  const FaultCounts counts = world.fault.counts();
  size_t damaged = 0;
  for (const Status& status : all) damaged += status.code() == StatusCode::kDataLoss ? 1 : 0;
  BOOST_TEST(damaged == counts.damaged);
  BOOST_TEST((damaged > 5 && counts.repeated > 5 && counts.delayed > 20));
  BOOST_TEST(log.landed().size() == 100 - damaged + counts.repeated);
  world.fault.retract(ticket->landing);
}

BOOST_AUTO_TEST_CASE(a_cut_node_gets_nothing_until_it_is_healed) {
  World world({.seed = 5, .delay_message = 1, .delay_part = 1, .delay_max = milliseconds(10)});
  PeerLog log;
  world.fault.set_peer_observer(&log);
  Memory memory(world.fault, 64, 1);
  Ends ends;
  const auto move = [&] {
    world.fault.move("", {}, TrafficClass::kBulk, {0, {memory.span()}}, ends.done());
  };
  world.send(3);
  move();
  world.fault.cut("");
  BOOST_TEST(log.lost().size() == 1U);
  BOOST_TEST(ends.all().size() == 1U);
  BOOST_TEST(
      (world.fault.send("x", TrafficClass::kControl, {1}).code() == StatusCode::kUnavailable));
  move();
  BOOST_TEST(ends.all().size() == 2U);
  BOOST_TEST((ends.all()[1].code() == StatusCode::kUnavailable));
  world.pass(milliseconds(20));
  BOOST_TEST(world.collector.received().empty());
  world.fault.heal("");
  world.send(1);
  world.pass(milliseconds(20));
  BOOST_TEST(world.collector.received().size() == 1U);
  world.fault.set_peer_observer(nullptr);
}

BOOST_AUTO_TEST_CASE(destroying_it_ends_what_it_holds) {
  Ends ends;
  {
    World world({.seed = 6, .delay_part = 1, .delay_max = milliseconds(10)});
    Memory memory(world.fault, 64, 1);
    world.fault.move("", {}, TrafficClass::kBulk, {0, {memory.span()}}, ends.done());
  }
  BOOST_REQUIRE(ends.all().size() == 1U);
  BOOST_TEST((ends.all()[0].code() == StatusCode::kUnavailable));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe::conformance
