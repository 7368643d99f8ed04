#pragma once
// Transport between processes, over UCX. A node listens at one TCP address, where others join (see
// transport/session); messages and parts then travel by UCX, over whatever network it finds best
// between the two. docs/adr/0005-ucx-transport.md says why it is built this way.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/limits.h"
#include "transport/session/compatibility.h"
#include "troupe/transport.h"

namespace troupe {

struct UcxOptions {
  // A numeric IPv4 address of this machine and a port: where the node listens, and its name for
  // all others. Port 0 takes a free one.
  std::string host = "127.0.0.1";
  uint16_t port = 0;
  // Of the cluster: limits::kSecretBytesMin bytes or more. It is not printed.
  std::string secret;
  // Grows with every start of the node, e.g. the time of its start: a peer that comes back with an
  // older one is refused, with a newer one replaces its former self.
  uint64_t incarnation = 1;
  CompatibilityRecord record;
  // A peer silent for so long is lost; limits::kKeepaliveInterval is how often one says something.
  Duration peer_timeout = limits::kKeepaliveTimeout;
  // Which network devices UCX may use, in the syntax of UCX_NET_DEVICES. Empty: the interface that
  // has `host`, and all devices that are no IP interfaces. The operator's UCX_NET_DEVICES wins, as
  // do all other UCX_ variables.
  std::string net_devices;
  // Whether large runs of memory go by UCX's rendezvous, straight into the landing. Not over TCP:
  // UCX 1.13 may crash when a peer is lost meanwhile, and there it is no faster.
  bool rendezvous = false;
  // Unpredictable 64 bits at each call; called from start() and from the transport's thread.
  std::function<uint64_t()> random;
  // For tests: changes the checksum of a part on its way out. Called on the transport's thread.
  std::function<uint64_t(uint64_t)> checksum_fault;
};

// "host:port" → the same with a numeric address. kInvalidArgument: not of that form. kNotFound: no
// such host. Asks the system's resolver, and so may block.
[[nodiscard]] Result<std::string> resolve_node(std::string_view host_and_port);

// Callbacks come on the transport's only thread, except for messages and parts to the node itself,
// which are handed over on the sender's.
class UcxTransport final : public Transport {
 public:
  // kInvalidArgument: an option breaks its rule. kUnavailable: the address cannot be listened at,
  // or UCX finds no network. `clock` must outlive the transport.
  [[nodiscard]] static Result<std::unique_ptr<UcxTransport>> start(UcxOptions options,
                                                                   const Clock& clock);
  // Waits until everything under way has ended, which takes milliseconds.
  ~UcxTransport() override;
  UcxTransport(const UcxTransport&) = delete;
  UcxTransport& operator=(const UcxTransport&) = delete;

  // This node's name.
  [[nodiscard]] const std::string& node() const;

  [[nodiscard]] Status bind(std::string_view endpoint, MessageReceiver& receiver) override;
  void unbind(std::string_view endpoint) override;
  [[nodiscard]] std::string address_of(std::string_view endpoint) const override;
  // Messages to one node keep their order, whatever their class; they overtake parts.
  [[nodiscard]] Status send(std::string_view address, TrafficClass traffic,
                            MessageWords words) override;
  [[nodiscard]] Status register_memory(std::span<std::byte> memory) override;
  void unregister_memory(std::span<std::byte> memory) override;
  [[nodiscard]] Result<BulkTicket> expose(std::vector<std::span<std::byte>> ranges,
                                          uint64_t label_high, uint64_t label_low,
                                          LandingObserver& observer) override;
  void retract(uint64_t landing) override;
  void move(std::string_view node, const BulkTicket& ticket, TrafficClass traffic, BulkPart part,
            MoveDone done) override;
  void set_peer_observer(PeerObserver* observer) override;
  [[nodiscard]] std::vector<PeerState> peers() const override;

 private:
  struct Parts;
  explicit UcxTransport(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace troupe
