#pragma once
// Whether a peer still lives, how far away it is, and what its clock says. Plain state: the owner
// moves the bytes and tells the time.

#include <array>
#include <chrono>
#include <optional>

#include "base/clock.h"
#include "base/limits.h"
#include "transport/session/limits.h"

namespace troupe {

// All times are of the clock of whoever is named.
struct Ping {
  int64_t sender_ns = 0;  // when it was sent
};
struct Pong {
  int64_t pinger_ns = 0;    // of the ping
  int64_t answerer_ns = 0;  // when the ping was answered
};

class Keepalive final {
 public:
  // `timeout`: after so much silence the peer is lost; several times limits::kKeepaliveInterval.
  explicit Keepalive(TimePoint now, Duration timeout = limits::kKeepaliveTimeout)
      : timeout_(timeout), heard_(now), looked_(now), pinged_(now - limits::kKeepaliveInterval) {}

  // Something of the peer's has arrived.
  void on_heard(TimePoint now) { heard_ = now; }
  // A ping to send, when one is due.
  [[nodiscard]] std::optional<Ping> ping_due(TimePoint now);
  [[nodiscard]] static Pong answer(const Ping& ping, TimePoint now);
  // The estimate of a clock's offset follows NTP (RFC 5905, section 8), where the answerer's two
  // times are one, and takes the sample with the smallest round trip of the last
  // limits::kClockSamplesMax: it was delayed least, so its two ways differ least.
  void on_pong(const Pong& pong, TimePoint now);

  // The peer has been silent for the timeout. Call it often, after having read all
  // that has arrived: where this node itself did not run for limits::kKeepaliveOwnPause, the
  // silence starts anew.
  [[nodiscard]] bool is_lost(TimePoint now);

  [[nodiscard]] Duration silence(TimePoint now) const { return now - heard_; }
  [[nodiscard]] Duration round_trip() const { return latest_; }
  [[nodiscard]] Duration clock_offset() const { return best().offset; }
  [[nodiscard]] Duration clock_uncertainty() const { return best().round_trip / 2; }

 private:
  struct Sample {
    Duration round_trip{0};
    Duration offset{0};
  };
  [[nodiscard]] Sample best() const;

  const Duration timeout_;
  TimePoint heard_, looked_, pinged_;
  Duration latest_{0};
  std::array<Sample, limits::kClockSamplesMax> samples_;  // a ring
  size_t samples_taken_ = 0;
};

}  // namespace troupe
