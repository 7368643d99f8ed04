#pragma once
// One node of a simulated network (sim_network.h): the whole Transport port in virtual time.

#include <map>
#include <memory>
#include <string>

#include "transport/local/endpoint_table.h"
#include "transport/local/landing_table.h"
#include "transport/local/registered_memory.h"
#include "transport/sim/sim_network.h"
#include "troupe/transport.h"

namespace troupe {

// Callbacks come on the thread that runs the network's events, except for messages and parts to the
// node itself, which are handed over on the sender's.
class SimTransport final : public Transport {
 public:
  // `network` must outlive the transport. A name is taken by one transport at a time; whoever comes
  // next under it has a higher incarnation.
  SimTransport(SimNetwork& network, std::string node, uint64_t incarnation);
  // Peers notice within one trip, as of a process that was ended by the system; after
  // SimNetwork::hide_death() by its silence only.
  ~SimTransport() override;
  SimTransport(const SimTransport&) = delete;
  SimTransport& operator=(const SimTransport&) = delete;

  [[nodiscard]] const std::string& node() const { return node_; }

  [[nodiscard]] Status bind(std::string_view endpoint, MessageReceiver& receiver) override {
    return endpoints_.bind(endpoint, receiver);
  }
  void unbind(std::string_view endpoint) override { endpoints_.unbind(endpoint); }
  [[nodiscard]] std::string address_of(std::string_view endpoint) const override {
    return node_ + "/" + std::string(endpoint);
  }
  // Messages to one node keep their order, whatever their class; they overtake parts.
  [[nodiscard]] Status send(std::string_view address, TrafficClass traffic,
                            MessageWords words) override;
  [[nodiscard]] Status register_memory(std::span<std::byte> memory) override {
    return memory_.add(memory);
  }
  void unregister_memory(std::span<std::byte> memory) override { memory_.remove(memory); }
  [[nodiscard]] Result<BulkTicket> expose(std::vector<std::span<std::byte>> ranges,
                                          uint64_t label_high, uint64_t label_low,
                                          LandingObserver& observer) override;
  void retract(uint64_t landing) override { landings_.retract(landing); }
  // The bytes are copied at the instant at which the last of them arrives.
  void move(std::string_view node, const BulkTicket& ticket, TrafficClass traffic, BulkPart part,
            MoveDone done) override;
  void set_peer_observer(PeerObserver* observer) override;
  [[nodiscard]] std::vector<PeerState> peers() const override;

  [[nodiscard]] size_t landings_open() const { return landings_.open_count(); }

 private:
  friend class SimNetwork;

  SimNetwork& network_;
  const std::string node_;
  const uint64_t incarnation_;
  uint32_t index_ = 0;                // in the network
  PeerObserver* observer_ = nullptr;  // guarded by the network's mutex
  EndpointTable endpoints_;
  RegisteredMemory memory_;
  LandingTable landings_;
};

}  // namespace troupe
