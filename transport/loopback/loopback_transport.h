#pragma once
// Transport inside one process: a message is handed to its receiver on the sender's thread, and a
// part is copied there. It has one node, with an empty name, and no peers.

#include <string>

#include "transport/local/endpoint_table.h"
#include "transport/local/landing_table.h"
#include "transport/local/registered_memory.h"
#include "troupe/transport.h"

namespace troupe {

class LoopbackTransport final : public Transport {
 public:
  LoopbackTransport() = default;
  // Asserts that every endpoint has been unbound, and retracts the landings that are open. Nobody
  // may be inside move().
  ~LoopbackTransport() override { landings_.retract_all(); }
  LoopbackTransport(const LoopbackTransport&) = delete;
  LoopbackTransport& operator=(const LoopbackTransport&) = delete;

  [[nodiscard]] Status bind(std::string_view endpoint, MessageReceiver& receiver) override {
    return endpoints_.bind(endpoint, receiver);
  }
  void unbind(std::string_view endpoint) override { endpoints_.unbind(endpoint); }
  [[nodiscard]] std::string address_of(std::string_view endpoint) const override {
    return std::string(endpoint);
  }
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
  // Copies on the calling thread; `done` comes from inside. There is no checksum: the bytes do not
  // leave the memory.
  void move(std::string_view node, const BulkTicket& ticket, TrafficClass traffic, BulkPart part,
            MoveDone done) override;

  // Never called: there are no peers.
  void set_peer_observer(PeerObserver* /*observer*/) override {}
  [[nodiscard]] std::vector<PeerState> peers() const override { return {}; }

 private:
  EndpointTable endpoints_;
  RegisteredMemory memory_;
  LandingTable landings_{1};
};

}  // namespace troupe
