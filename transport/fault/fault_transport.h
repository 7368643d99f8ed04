#pragma once
// A transport that goes wrong by plan: between a node's actors and any other transport, it loses,
// repeats, delays and damages messages and parts, and cuts peers off. The plan is a function of its
// seed and of the order of the calls, so that a single-threaded run repeats exactly.
//
// It keeps the contract of the port whatever it does: messages to one endpoint stay in order, each
// part ends exactly once, and what is reported as landed has landed.

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "troupe/transport.h"

namespace troupe {

// Probabilities, each of its own, between 0 and 1. Nothing goes wrong by default.
struct FaultPlan {
  uint64_t seed = 0;
  double lose_message = 0;
  double repeat_message = 0;
  double damage_message = 0;  // one bit
  double delay_message = 0;   // and all that follow to the same endpoint
  double damage_part = 0;     // it does not land: kDataLoss
  double repeat_part = 0;     // it lands twice, and ends once
  double delay_part = 0;      // messages and other parts overtake it
  Duration delay_max{0};      // delays are uniform between 0 and this
};

struct FaultCounts {
  uint64_t lost = 0, repeated = 0, damaged = 0, delayed = 0, cut = 0;
  bool operator==(const FaultCounts&) const = default;
};

// Thread-safe. What was delayed goes on inside release_due(), and nowhere else: there is no thread.
class FaultTransport final : public Transport, private PeerObserver {
 public:
  // `inner` and `clock` must outlive it.
  FaultTransport(Transport& inner, const FaultPlan& plan, const Clock& clock);
  // Delayed messages are dropped, delayed parts end with kUnavailable.
  ~FaultTransport() override;
  FaultTransport(const FaultTransport&) = delete;
  FaultTransport& operator=(const FaultTransport&) = delete;

  // Hands over what is due by the clock.
  void release_due();
  // When release_due() next has something to do.
  [[nodiscard]] std::optional<TimePoint> next_due() const;
  // Nothing goes to `node` any more, and the observer is told that it is lost. What comes from it
  // still comes; cut both sides for a partition.
  void cut(const std::string& node);
  void heal(const std::string& node);
  [[nodiscard]] FaultCounts counts() const;

  [[nodiscard]] Status bind(std::string_view endpoint, MessageReceiver& receiver) override {
    return inner_.bind(endpoint, receiver);
  }
  void unbind(std::string_view endpoint) override { inner_.unbind(endpoint); }
  [[nodiscard]] std::string address_of(std::string_view endpoint) const override {
    return inner_.address_of(endpoint);
  }
  [[nodiscard]] Status send(std::string_view address, TrafficClass traffic,
                            MessageWords words) override;
  [[nodiscard]] Status register_memory(std::span<std::byte> memory) override {
    return inner_.register_memory(memory);
  }
  void unregister_memory(std::span<std::byte> memory) override { inner_.unregister_memory(memory); }
  [[nodiscard]] Result<BulkTicket> expose(std::vector<std::span<std::byte>> ranges,
                                          uint64_t label_high, uint64_t label_low,
                                          LandingObserver& observer) override {
    return inner_.expose(std::move(ranges), label_high, label_low, observer);
  }
  void retract(uint64_t landing) override { inner_.retract(landing); }
  void move(std::string_view node, const BulkTicket& ticket, TrafficClass traffic, BulkPart part,
            MoveDone done) override;
  void set_peer_observer(PeerObserver* observer) override;
  [[nodiscard]] std::vector<PeerState> peers() const override;

 private:
  struct HeldMessage {
    std::string address;
    TrafficClass traffic{};
    MessageWords words;
    int copies = 1;
    TimePoint due;
  };
  struct HeldPart {
    std::string node;
    BulkTicket ticket;
    TrafficClass traffic{};
    BulkPart part;
    MoveDone done;
    int copies = 1;
    TimePoint due;
  };

  void on_peer_joined(std::string_view node, uint64_t incarnation) override;
  void on_peer_lost(std::string_view node, const Status& why) override;
  [[nodiscard]] bool happens(double probability);
  [[nodiscard]] Duration delay();
  [[nodiscard]] bool is_cut(std::string_view address) const;
  void hand_over(HeldPart part);

  Transport& inner_;
  const FaultPlan plan_;
  const Clock& clock_;

  mutable std::mutex mutex_;
  uint64_t draws_ = 0;
  std::map<std::string, std::deque<HeldMessage>, std::less<>> messages_;  // by address, in order
  std::vector<HeldPart> parts_;
  std::set<std::string, std::less<>> cut_;
  FaultCounts counts_;

  std::mutex observer_mutex_;  // held while the observer runs
  PeerObserver* observer_ = nullptr;
};

}  // namespace troupe
