#include "apps/node/peer_clocks.h"

#include "base/limits.h"

namespace troupe {

std::optional<Duration> PeerClocks::offset(std::string_view node) {
  const TimePoint now = clock_.now();
  if (!asked_ || now - *asked_ >= limits::kKeepaliveInterval) {
    asked_ = now;
    offsets_.clear();
    for (const PeerState& peer : transport_.peers())
      if (peer.connected && peer.round_trip.count() > 0)
        offsets_.emplace(peer.node, peer.clock_offset);
  }
  const auto found = offsets_.find(node);
  if (found == offsets_.end()) return std::nullopt;
  return found->second;
}

}  // namespace troupe
