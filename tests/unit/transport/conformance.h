#pragma once
// What every Transport must do, whatever carries its bytes. A transport's own test calls
// check_conformance() with two of its instances that reach each other, or the same one twice.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "troupe/transport.h"

namespace troupe::conformance {

// How long anything of a test may take before it counts as hanging.
inline constexpr std::chrono::seconds kPatience{20};

// Waits on what other threads bring about.
class Monitor {
 public:
  // False: `condition`, evaluated under the lock, did not come true in time.
  bool wait_until(const std::function<bool()>& condition,
                  std::chrono::milliseconds patience = kPatience) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, condition);
  }

 protected:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
};

class Collector final : public MessageReceiver, public Monitor {
 public:
  void on_message(MessageWords words) override;
  [[nodiscard]] bool wait_for(size_t messages) const;
  [[nodiscard]] std::vector<MessageWords> received() const;

 private:
  std::vector<MessageWords> received_;
};

struct Landed {
  uint64_t landing, offset, bytes;
  bool operator==(const Landed&) const = default;
};

class LandingLog final : public LandingObserver, public Monitor {
 public:
  void on_landed(uint64_t landing, uint64_t offset, uint64_t bytes) override;
  void on_retracted(uint64_t landing) override;
  [[nodiscard]] bool wait_for_landed(size_t parts) const;
  [[nodiscard]] bool wait_for_retracted(size_t landings) const;
  [[nodiscard]] std::vector<Landed> landed() const;
  [[nodiscard]] std::vector<uint64_t> retracted() const;

 private:
  std::vector<Landed> landed_;
  std::vector<uint64_t> retracted_;
};

// Counts the ends of parts.
class Ends final : public Monitor {
 public:
  [[nodiscard]] MoveDone done();
  [[nodiscard]] bool wait_for(size_t parts) const;
  [[nodiscard]] std::vector<Status> all() const;

 private:
  std::vector<Status> all_;
};

class PeerLog final : public PeerObserver, public Monitor {
 public:
  void on_peer_joined(std::string_view node, uint64_t incarnation) override;
  void on_peer_lost(std::string_view node, const Status& why) override;
  [[nodiscard]] bool wait_for_joined(size_t peers) const;
  [[nodiscard]] bool wait_for_lost(size_t peers,
                                   std::chrono::milliseconds patience = kPatience) const;
  [[nodiscard]] std::vector<std::string> joined() const;  // "node incarnation"
  [[nodiscard]] std::vector<std::pair<std::string, Status>> lost() const;

 private:
  std::vector<std::string> joined_;
  std::vector<std::pair<std::string, Status>> lost_;
};

// Memory that is registered with a transport as long as it lives, filled by its position.
class Memory final {
 public:
  Memory(Transport& transport, size_t bytes, uint8_t seed);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  [[nodiscard]] std::span<std::byte> span() { return bytes_; }
  [[nodiscard]] std::span<std::byte> at(size_t offset, size_t bytes) {
    return span().subspan(offset, bytes);
  }

 private:
  Transport& transport_;
  std::vector<std::byte> bytes_;
};

// The node's name by which others move parts to it.
[[nodiscard]] std::string name_of(const Transport& transport);

// Moves `bytes` from one transport to the other and compares what landed.
void moves_bytes(Transport& from, Transport& to, size_t bytes);

// The whole suite.
void check_conformance(Transport& from, Transport& to);

}  // namespace troupe::conformance
