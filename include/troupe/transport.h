#pragma once
// The port through which nodes and actors reach each other. It moves messages between named
// endpoints, and byte ranges between memories, and knows neither requests nor KV nor models. Every
// implementation passes one conformance suite (tests/unit/transport/conformance.h).
//
// Names. A *node* is one process that takes part, named by the address at which it listens
// ("10.0.0.7:7000"; transports inside one process have a single node with an empty name). An
// *endpoint* is a receiver within a node. Others reach it at `node/name`; an address without a
// slash is an endpoint of one's own node.
//
// Threads. All methods are thread-safe. Callbacks (receivers, observers, completions) come on a
// thread of the transport, or on the caller's inside the call; they must not block and may call the
// transport again, except unbind() and the destructor.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/status.h"

namespace troupe {

// What may overtake what when a link is busy; lower values go first.
enum class TrafficClass : uint8_t {
  kControl = 0,
  kTokens = 1,
  kBulk = 2,            // KV that somebody waits for
  kBulkBackground = 3,  // KV that nobody waits for; never delays the others
};

// A message's payload: whole 8-byte words, so that a Cap'n Proto reader can use it in place.
using MessageWords = std::vector<uint64_t>;

// Takes what arrives at one endpoint.
class MessageReceiver {
 public:
  virtual ~MessageReceiver() = default;
  // Calls for one endpoint from one sender come in the order of sending.
  virtual void on_message(MessageWords words) = 0;
};

// --- The bulk lane -------------------------------------------------------------------------------
//
// The receiver decides where bytes land: it exposes a *landing*, a list of memory ranges that one
// sender may fill, and gives its ticket to that sender inside a message. The sender moves parts
// into it. A part is received whole, its checksum is verified, and only then either side hears of
// it. The receiver ends the landing by retracting it; once on_retracted() has been called nothing
// is written there any more, whatever is still under way somewhere. So a late or repeated part
// cannot hit memory that has found a new owner.

// Names one landing. Plain values, made to travel in a message. A part whose ticket is not exactly
// that of an open landing is refused (kNotFound) and counted.
struct BulkTicket {
  uint64_t landing = 0;  // never used twice by a node, also across its restarts
  // What the receiver gave to expose(): opaque here. It lets both sides name in their own terms
  // what a part belongs to (a request and its attempt and epoch).
  uint64_t label_high = 0, label_low = 0;
  bool operator==(const BulkTicket&) const = default;
};

class LandingObserver {
 public:
  virtual ~LandingObserver() = default;
  // Bytes [offset, offset + bytes) of the landing stand, verified. A repeated part is written again
  // and reported again.
  virtual void on_landed(uint64_t landing, uint64_t offset, uint64_t bytes) = 0;
  // Follows each retract() exactly once: the memory is its owner's again.
  virtual void on_retracted(uint64_t landing) = 0;
};

// One contiguous range of a landing, and where its bytes come from: `pieces` one after the other.
struct BulkPart {
  uint64_t offset = 0;
  std::vector<std::span<const std::byte>> pieces;
};

// Called exactly once. Ok: the receiver has the part and has verified it. kUnavailable: the peer is
// lost. kNotFound: no such landing is open there (any more). kInvalidArgument: the part does not
// fit the landing, or breaks another rule of move(). kDataLoss: damaged on the way; the landing is
// still open. kResourceExhausted: limits::kMovesMax are under way to that node.
using MoveDone = std::function<void(Status)>;

// --- Peers ---------------------------------------------------------------------------------------

struct PeerState {
  std::string node;  // its address
  bool connected = false;
  uint64_t incarnation = 0;  // of the peer's process, as far as known
  // Of the latest keepalives. Clock offset: peer's monotonic clock minus ours, true within
  // ± uncertainty (half the fastest round trip seen lately).
  std::chrono::nanoseconds round_trip{0};
  std::chrono::nanoseconds clock_offset{0};
  std::chrono::nanoseconds clock_uncertainty{0};
  uint64_t messages_sent = 0, messages_received = 0;
  uint64_t bytes_sent = 0, bytes_received = 0;  // of both lanes
  uint64_t parts_refused = 0;                   // of that peer's, by this node
  std::string transport;                        // what carries it, e.g. "tcp lo"; for people
};

class PeerObserver {
 public:
  virtual ~PeerObserver() = default;
  // The peer takes part: it proved that it knows the secret, and its record agrees with ours.
  virtual void on_peer_joined(std::string_view node, uint64_t incarnation) = 0;
  // A peer that was connected, or to which something was to be sent, cannot be reached: dead,
  // silent, cut off, restarted, or refused (then `why` names the reason, e.g. both values that
  // differ). Everything under way to and from it has ended or is about to.
  virtual void on_peer_lost(std::string_view node, const Status& why) = 0;
};

class Transport {
 public:
  // Ends all that is under way: parts are told kUnavailable, messages that wait are dropped, and
  // what is still exposed is retracted. Every endpoint must have been unbound. No callback comes
  // after it has returned.
  virtual ~Transport() = default;

  // --- Messages

  // Makes `receiver` the owner of the endpoint's messages until unbind() has returned; it must live
  // that long. kInvalidArgument: the name is empty, holds a slash, or is taken.
  [[nodiscard]] virtual Status bind(std::string_view endpoint, MessageReceiver& receiver) = 0;
  // After it returns no call of the receiver is running or will come. Not from inside a callback.
  virtual void unbind(std::string_view endpoint) = 0;
  // The address at which others reach an endpoint of this node, bound or not.
  [[nodiscard]] virtual std::string address_of(std::string_view endpoint) const = 0;

  // Non-blocking. Ok: handed over, which is no promise of arrival. kUnavailable: nobody is there,
  // as far as is known now. kInvalidArgument: larger than limits::kMessageBytesMax, or the address
  // is none. kResourceExhausted: the queue to that node is full (limits::kSendQueueBytesMax).
  // A node that was never heard of is connected to; what is sent meanwhile waits for that, in
  // order, and is dropped, with on_peer_lost(), when it fails.
  [[nodiscard]] virtual Status send(std::string_view address, TrafficClass traffic,
                                    MessageWords words) = 0;

  // --- Bulk

  // Memory must be registered before ranges of it are exposed or moved, and stay so until nothing
  // refers to it, or until the transport is destroyed; registering is slow and done once.
  // kResourceExhausted: the system refuses to pin it.
  [[nodiscard]] virtual Status register_memory(std::span<std::byte> memory) = 0;
  virtual void unregister_memory(std::span<std::byte> memory) = 0;

  // Opens a landing over `ranges`, taken as one run of bytes in that order. `observer` must live
  // until on_retracted(). kInvalidArgument: no ranges, or not in registered memory.
  // kResourceExhausted: limits::kLandingsMax are open.
  [[nodiscard]] virtual Result<BulkTicket> expose(std::vector<std::span<std::byte>> ranges,
                                                  uint64_t label_high, uint64_t label_low,
                                                  LandingObserver& observer) = 0;
  // Non-blocking; on_retracted() may come from inside. A landing that is not open is ignored.
  virtual void retract(uint64_t landing) = 0;
  // Non-blocking. Moves `part` to the node's landing; several small ones may travel together. The
  // pieces must lie in registered memory and stay unchanged until `done`. `node` is a node's name,
  // or an address of an endpoint in it.
  virtual void move(std::string_view node, const BulkTicket& ticket, TrafficClass traffic,
                    BulkPart part, MoveDone done) = 0;

  // --- Peers

  // At most one observer; it must live until set_peer_observer(nullptr) has returned, after which
  // no call of it is running or will come. Not from inside a callback.
  virtual void set_peer_observer(PeerObserver* observer) = 0;
  // By name.
  [[nodiscard]] virtual std::vector<PeerState> peers() const = 0;
};

// "10.0.0.7:7000/router" → "10.0.0.7:7000"; an address without a slash: "".
[[nodiscard]] inline std::string_view node_of(std::string_view address) {
  const size_t slash = address.rfind('/');
  return slash == std::string_view::npos ? std::string_view{} : address.substr(0, slash);
}

}  // namespace troupe
