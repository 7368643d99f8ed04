// The whole contract between two nodes of one process.

#include "transport/ucx/ucx_transport.h"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <thread>

#include "base/limits.h"
#include "base/os/memory.h"
#include "tests/unit/transport/ucx/ucx_fixture.h"

namespace troupe::conformance {
namespace {

BOOST_AUTO_TEST_SUITE(ucx_transport)

BOOST_AUTO_TEST_CASE(passes_the_conformance_suite) {
  const auto a = start_ucx(), b = start_ucx();
  check_conformance(*a, *b);
}

BOOST_AUTO_TEST_CASE(passes_the_conformance_suite_by_rendezvous) {
  UcxOptions with = ucx_options();
  with.rendezvous = true;
  const auto a = start_ucx(with), b = start_ucx(with);
  check_conformance(*a, *b);
}

BOOST_AUTO_TEST_CASE(passes_the_conformance_suite_with_itself) {
  const auto a = start_ucx();
  check_conformance(*a, *a);
}

BOOST_AUTO_TEST_CASE(moves_a_gibibyte) {
  constexpr size_t kBytes = size_t{1} << 30;
  const auto available = available_memory_bytes();
  if (!available.ok() || available.value() < 3 * kBytes) {
    BOOST_TEST_MESSAGE("skipped: needs 3 GiB of free memory");
    return;
  }
  const auto a = start_ucx(), b = start_ucx();
  moves_bytes(*a, *b, kBytes);
}

BOOST_AUTO_TEST_CASE(tells_both_sides_of_each_other) {
  const auto a = start_ucx(ucx_options(5)), b = start_ucx(ucx_options(6));
  Watch at_a(*a), at_b(*b);
  Collector collector;
  BOOST_REQUIRE(b->bind("x", collector).ok());
  BOOST_TEST(a->send(b->address_of("x"), TrafficClass::kControl, {1, 2}).ok());
  BOOST_TEST(collector.wait_for(1));
  BOOST_TEST(at_a.log.wait_for_joined(1));
  BOOST_TEST(at_b.log.wait_for_joined(1));
  BOOST_TEST((at_a.log.joined() == std::vector<std::string>{b->node() + " 6"}));
  BOOST_TEST((at_b.log.joined() == std::vector<std::string>{a->node() + " 5"}));
  // The counters come with the next keepalive.
  PeerState state;
  const TimePoint deadline = kClock.now() + kPatience;
  while (state.messages_sent == 0 || state.round_trip.count() == 0) {
    BOOST_REQUIRE(kClock.now() < deadline);
    BOOST_REQUIRE(a->peers().size() == 1U);
    state = a->peers()[0];
  }
  BOOST_TEST(state.node == b->node());
  BOOST_TEST(state.connected);
  BOOST_TEST(state.incarnation == 6U);
  BOOST_TEST(state.messages_sent == 1U);
  BOOST_TEST(state.bytes_sent == 16U);
  BOOST_TEST(!state.transport.empty());
  // Both nodes have the same clock.
  BOOST_TEST(std::abs(state.clock_offset.count()) <= state.clock_uncertainty.count());
  b->unbind("x");
}

// Whoever connects first, and also when both do at once, one session comes out of it.
BOOST_AUTO_TEST_CASE(two_nodes_that_connect_to_each_other_at_once_join_once) {
  for (int round = 0; round < 20; ++round) {
    const auto a = start_ucx(), b = start_ucx();
    Watch at_a(*a), at_b(*b);
    Collector from_a, from_b;
    BOOST_REQUIRE(a->bind("x", from_b).ok());
    BOOST_REQUIRE(b->bind("x", from_a).ok());
    std::atomic<int> refused{0};
    std::thread other([&] {
      for (uint64_t i = 0; i < 20; ++i) {
        if (!b->send(a->address_of("x"), TrafficClass::kControl, {i}).ok()) ++refused;
      }
    });
    for (uint64_t i = 0; i < 20; ++i) {
      BOOST_TEST(a->send(b->address_of("x"), TrafficClass::kControl, {i}).ok());
    }
    other.join();
    BOOST_TEST(refused == 0);
    BOOST_TEST(from_a.wait_for(20));
    BOOST_TEST(from_b.wait_for(20));
    BOOST_TEST(at_a.log.joined().size() == 1U);
    BOOST_TEST(at_b.log.joined().size() == 1U);
    BOOST_TEST(at_a.log.lost().empty());
    BOOST_TEST(at_b.log.lost().empty());
    a->unbind("x");
    b->unbind("x");
  }
}

BOOST_AUTO_TEST_CASE(a_damaged_part_does_not_land_and_its_landing_stays_open) {
  std::atomic<bool> damage{true};
  UcxOptions damaging = ucx_options();
  damaging.rendezvous = true;
  damaging.checksum_fault = [&damage](uint64_t sum) { return damage ? sum ^ 1 : sum; };
  const auto a = start_ucx(damaging), b = start_ucx();
  constexpr size_t kBytes = size_t{2} << 20;
  Memory source(*a, kBytes, 1), target(*b, kBytes, 2);
  LandingLog log;
  const auto ticket = b->expose({target.span()}, 0, 0, log);
  BOOST_REQUIRE(ticket.ok());
  const auto move = [&](size_t bytes) {
    Ends ends;
    a->move(b->node(), ticket.value(), TrafficClass::kBulk, {0, {source.at(0, bytes)}},
            ends.done());
    BOOST_REQUIRE(ends.wait_for(1));
    return ends.all()[0].code();
  };
  BOOST_TEST((move(100) == StatusCode::kDataLoss));     // copied out of a frame
  BOOST_TEST((move(kBytes) == StatusCode::kDataLoss));  // by rendezvous
  BOOST_TEST(log.landed().empty());
  damage = false;
  BOOST_TEST((move(kBytes) == StatusCode::kOk));
  BOOST_TEST(log.landed().size() == 1U);
  b->retract(ticket->landing);
  BOOST_TEST(log.wait_for_retracted(1));
  const TimePoint deadline = kClock.now() + kPatience;
  while (b->peers().at(0).parts_refused != 2) BOOST_REQUIRE(kClock.now() < deadline);
}

BOOST_AUTO_TEST_CASE(the_queue_to_a_node_is_bounded) {
  const auto a = start_ucx();
  std::string nobody;
  {
    const auto b = start_ucx();
    nobody = b->address_of("x");
  }
  Watch watch(*a);
  StatusCode code = StatusCode::kOk;
  const MessageWords large(limits::kMessageBytesMax / sizeof(uint64_t));
  int sent = 0;
  while (code == StatusCode::kOk && sent < 10) {
    code = a->send(nobody, TrafficClass::kTokens, large).code();
    ++sent;
  }
  BOOST_TEST((code == StatusCode::kResourceExhausted));
  BOOST_TEST(sent == 4);  // the fourth is over 256 MiB, with what they count besides their bytes
  // What waited is dropped when nobody answers, and the queue is empty again.
  BOOST_TEST(watch.log.wait_for_lost(1));
  BOOST_TEST(a->send(nobody, TrafficClass::kTokens, {1}).ok());
}

BOOST_AUTO_TEST_CASE(a_node_that_nobody_answers_for_is_lost_and_its_parts_with_it) {
  const auto a = start_ucx();
  std::string nobody;
  {
    const auto b = start_ucx();
    nobody = b->node();
  }
  Watch watch(*a);
  Memory source(*a, 100, 1);
  Ends ends;
  a->move(nobody, {1, 2, 3}, TrafficClass::kBulk, {0, {source.span()}}, ends.done());
  BOOST_TEST(ends.wait_for(1));
  BOOST_TEST((ends.all()[0].code() == StatusCode::kUnavailable), ends.all()[0].message());
  BOOST_TEST(watch.log.wait_for_lost(1));
  BOOST_TEST(watch.log.lost()[0].first == nobody);
  for (const char* wrong : {"x:1/y", "1.2.3.4/y", "1.2.3.4:0/y", "1.2.3.4:99999/y", ":1/y",
                            "1.2.3.4:1/", "1.2.3.4:1/a/b"}) {
    const StatusCode code = a->send(wrong, TrafficClass::kControl, {1}).code();
    BOOST_TEST((code == StatusCode::kInvalidArgument), wrong);
  }
}

// A node that starts later than who wants to reach it.
BOOST_AUTO_TEST_CASE(what_is_sent_to_a_node_that_starts_soon_waits_for_it) {
  const auto a = start_ucx();
  UcxOptions late = ucx_options();
  {
    const auto b = start_ucx();
    late.port = static_cast<uint16_t>(std::stoi(b->node().substr(b->node().rfind(':') + 1)));
  }
  const std::string address = late.host + ":" + std::to_string(late.port) + "/x";
  for (uint64_t i = 0; i < 10; ++i) {
    BOOST_TEST(a->send(address, TrafficClass::kControl, {i}).ok());
  }
  const auto b = start_ucx(late);
  Collector collector;
  BOOST_REQUIRE(b->bind("x", collector).ok());
  BOOST_TEST(collector.wait_for(10));
  b->unbind("x");
}

// In both directions, and with landings open on both sides.
BOOST_AUTO_TEST_CASE(everything_under_way_ends_once_when_a_node_is_destroyed) {
  constexpr size_t kBytes = size_t{32} << 20;
  for (int round = 0; round < 6; ++round) {
    auto a = start_ucx();
    const auto b = start_ucx();
    Memory at_b(*b, kBytes, 2);
    std::vector<std::byte> at_a(kBytes);
    BOOST_REQUIRE(a->register_memory(at_a).ok());
    LandingLog log_a, log_b;
    const auto into_a = a->expose({at_a}, 0, 0, log_a),
               into_b = b->expose({at_b.span()}, 0, 0, log_b);
    BOOST_REQUIRE((into_a.ok() && into_b.ok()));
    Ends ends_a, ends_b;
    for (size_t i = 0; i < 32; ++i) {
      const std::span<std::byte> mine(at_a.data() + (i << 20), size_t{1} << 20);
      const auto its = at_b.at(i << 20, size_t{1} << 20);
      a->move(b->node(), into_b.value(), TrafficClass::kBulk, {i << 20, {mine}}, ends_a.done());
      b->move(a->node(), into_a.value(), TrafficClass::kBulk, {i << 20, {its}}, ends_b.done());
    }
    if (round > 0) BOOST_TEST(ends_a.wait_for(static_cast<size_t>(round) * 4));
    a->unregister_memory(at_a);
    a.reset();
    BOOST_TEST(ends_a.all().size() == 32U);
    BOOST_TEST(log_a.retracted().size() == 1U);
    BOOST_TEST(ends_b.wait_for(32));
    BOOST_TEST(ends_b.all().size() == 32U);
    b->retract(into_b->landing);
    BOOST_TEST(log_b.wait_for_retracted(1));
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe::conformance
