#include "transport/session/keepalive.h"

#include <boost/test/unit_test.hpp>

namespace troupe {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr milliseconds kLook{20};

BOOST_AUTO_TEST_SUITE(keepalive)

BOOST_AUTO_TEST_CASE(a_silent_peer_is_lost_within_half_a_second) {
  ManualClock clock;
  Keepalive peer(clock.now());
  milliseconds silent{0};
  while (!peer.is_lost(clock.now())) {
    clock.advance(kLook);
    silent += kLook;
    BOOST_REQUIRE((silent <= milliseconds(500)));
  }
  BOOST_TEST((silent > limits::kKeepaliveTimeout - kLook));
}

BOOST_AUTO_TEST_CASE(a_peer_that_is_heard_of_is_not_lost) {
  ManualClock clock;
  Keepalive peer(clock.now());
  for (int i = 0; i < 1000; ++i) {
    clock.advance(kLook);
    if (i % 20 == 0) peer.on_heard(clock.now());
    BOOST_REQUIRE(!peer.is_lost(clock.now()));
  }
}

BOOST_AUTO_TEST_CASE(an_own_pause_is_not_taken_for_the_peers_silence) {
  ManualClock clock;
  Keepalive peer(clock.now());
  BOOST_TEST(!peer.is_lost(clock.now()));
  clock.advance(std::chrono::seconds(10));
  BOOST_TEST(!peer.is_lost(clock.now()));
  // From then on it counts again.
  milliseconds silent{0};
  while (!peer.is_lost(clock.now())) {
    clock.advance(kLook);
    silent += kLook;
    BOOST_REQUIRE((silent <= milliseconds(500)));
  }
}

BOOST_AUTO_TEST_CASE(pings_come_at_once_and_then_every_interval) {
  ManualClock clock;
  Keepalive peer(clock.now());
  BOOST_TEST(peer.ping_due(clock.now()).has_value());
  int pings = 0;
  for (int i = 0; i < 50; ++i) {
    clock.advance(kLook);
    if (peer.ping_due(clock.now())) ++pings;
  }
  BOOST_TEST(pings == 10);  // in a second
}

BOOST_AUTO_TEST_CASE(the_clock_offset_is_that_of_the_fastest_round_trip) {
  ManualClock clock;
  clock.advance(milliseconds(500));
  Keepalive peer(clock.now());
  const Duration offset = -std::chrono::hours(3);
  for (int i = 0; i < 10; ++i) {
    // The way there takes 50 µs, the way back 50 µs and on most tries a delay on top.
    const Ping ping{clock.now().time_since_epoch().count()};
    clock.advance(microseconds(50));
    const Pong pong = Keepalive::answer(ping, clock.now() + offset);
    clock.advance(microseconds(i == 4 ? 50 : 50 + 700 * (i + 1)));
    peer.on_pong(pong, clock.now());
    clock.advance(milliseconds(100));
  }
  BOOST_TEST((peer.clock_offset() == offset));
  BOOST_TEST((peer.clock_uncertainty() == microseconds(50)));
  BOOST_TEST((peer.round_trip() == microseconds(100 + 7000)));
}

BOOST_AUTO_TEST_CASE(old_samples_and_made_up_pongs_do_not_count) {
  ManualClock clock;
  clock.advance(std::chrono::seconds(100));
  Keepalive peer(clock.now());
  const auto sample = [&](microseconds round_trip) {
    const Ping ping{clock.now().time_since_epoch().count()};
    clock.advance(round_trip / 2);
    const Pong pong = Keepalive::answer(ping, clock.now());
    clock.advance(round_trip / 2);
    peer.on_pong(pong, clock.now());
  };
  sample(microseconds(10));
  for (size_t i = 0; i < limits::kClockSamplesMax; ++i) sample(microseconds(100));
  BOOST_TEST((peer.clock_uncertainty() == microseconds(50)));
  const int64_t now = clock.now().time_since_epoch().count();
  peer.on_pong({now + 1000000, 0}, clock.now());
  peer.on_pong({0, 0}, clock.now());
  peer.on_pong({INT64_MIN, INT64_MAX}, clock.now());
  BOOST_TEST((peer.clock_uncertainty() == microseconds(50)));
  peer.on_pong({now, INT64_MIN}, clock.now());  // of a mad clock; nothing overflows
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
