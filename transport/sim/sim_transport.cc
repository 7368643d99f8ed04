#include "transport/sim/sim_transport.h"

#include <utility>

#include "base/assert.h"

namespace troupe {
namespace {

// A life's first landing: no other life of the node, nor any other node, uses its numbers.
uint64_t first_landing(std::string_view node, uint64_t incarnation) {
  uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  for (const char c : node) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return (hash << 40) + (incarnation << 24) + 1;
}

}  // namespace

SimTransport::SimTransport(SimNetwork& network, std::string node, uint64_t incarnation)
    : network_(network),
      node_(std::move(node)),
      incarnation_(incarnation),
      landings_(first_landing(node_, incarnation)) {
  TROUPE_ASSERT(!node_.empty() && node_.find('/') == std::string::npos, node_);
  network_.attach(*this);
}

SimTransport::~SimTransport() {
  network_.detach(*this);
  landings_.retract_all();
}

Status SimTransport::send(std::string_view address, TrafficClass /*traffic*/, MessageWords words) {
  return network_.send(*this, address, std::move(words));
}

Result<BulkTicket> SimTransport::expose(std::vector<std::span<std::byte>> ranges,
                                        uint64_t label_high, uint64_t label_low,
                                        LandingObserver& observer) {
  TROUPE_RETURN_IF_ERROR(memory_.check(ranges));
  return landings_.open(std::move(ranges), label_high, label_low, observer);
}

void SimTransport::move(std::string_view node, const BulkTicket& ticket, TrafficClass traffic,
                        BulkPart part, MoveDone done) {
  network_.move(*this, node, ticket, traffic, std::move(part), std::move(done));
}

void SimTransport::set_peer_observer(PeerObserver* observer) {
  const SimNetwork::Lock lock(network_.mutex_);
  observer_ = observer;
}

std::vector<PeerState> SimTransport::peers() const {
  const SimNetwork::Lock lock(network_.mutex_);
  std::vector<PeerState> peers;
  for (const auto& [name, index] : network_.indices_) {
    const auto found = network_.sessions_.find(std::minmax(index_, index));
    if (index == index_ || found == network_.sessions_.end()) continue;
    const SimNetwork::Session& session = found->second;
    const SimNetwork::Link& out = network_.link(index_, index);
    const SimNetwork::Link& in = network_.link(index, index_);
    PeerState& peer = peers.emplace_back();
    peer.node = name;
    peer.connected = session.up[index_ < index ? 0 : 1];
    peer.incarnation = session.incarnations[index < index_ ? 0 : 1];
    peer.round_trip = out.how.latency + in.how.latency;
    peer.clock_uncertainty = peer.round_trip / 2;
    peer.messages_sent = out.messages_sent;
    peer.messages_received = in.messages_sent;
    peer.bytes_sent = out.bytes_sent;
    peer.bytes_received = in.bytes_sent;
    peer.parts_refused = in.parts_refused;
    peer.transport = "sim";
  }
  return peers;
}

}  // namespace troupe
