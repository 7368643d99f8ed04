#include "transport/session/keepalive.h"

#include <algorithm>

namespace troupe {
namespace {

int64_t ns(TimePoint time) {
  return time.time_since_epoch().count();
}

}  // namespace

std::optional<Ping> Keepalive::ping_due(TimePoint now) {
  if (now - pinged_ < limits::kKeepaliveInterval) return std::nullopt;
  pinged_ = now;
  return Ping{ns(now)};
}

Pong Keepalive::answer(const Ping& ping, TimePoint now) {
  return {ping.sender_ns, ns(now)};
}

void Keepalive::on_pong(const Pong& pong, TimePoint now) {
  // A time that this node has not sent lately is made up.
  if (pong.pinger_ns > ns(now) || pong.pinger_ns < ns(now - 10 * timeout_)) return;
  const Duration round_trip(ns(now) - pong.pinger_ns);
  latest_ = round_trip;
  // Unsigned, because the peer's clock may say anything.
  const uint64_t middle = static_cast<uint64_t>(pong.pinger_ns + round_trip.count() / 2);
  const Duration offset(static_cast<int64_t>(static_cast<uint64_t>(pong.answerer_ns) - middle));
  samples_[samples_taken_++ % samples_.size()] = {round_trip, offset};
}

bool Keepalive::is_lost(TimePoint now) {
  if (now - looked_ > limits::kKeepaliveOwnPause) heard_ = now;
  looked_ = now;
  return silence(now) > timeout_;
}

Keepalive::Sample Keepalive::best() const {
  const auto end =
      samples_.begin() + static_cast<ptrdiff_t>(std::min(samples_taken_, samples_.size()));
  const auto smallest = std::min_element(
      samples_.begin(), end,
      [](const Sample& a, const Sample& b) { return a.round_trip < b.round_trip; });
  return smallest == end ? Sample{} : *smallest;
}

}  // namespace troupe
