#pragma once
// One process of a simulated cluster: its node of the network, its clock, its mailboxes and timers.
// Its actors are built on top by SimFront and SimWorker.

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/wire/transport_outbox.h"
#include "sim/event_log.h"
#include "sim/plant.h"
#include "transport/sim/event_queue.h"
#include "transport/sim/seeded_rng.h"
#include "transport/sim/sim_transport.h"

namespace troupe::sim {

// What all processes of a run share.
struct Environment {
  EventQueue& events;
  SeededRng& rng;
  SimNetwork& network;
  EventLog& log;
  Saboteur& saboteur;
  // A mail between actors of one process waits up to so long. 0: not at all.
  Duration mail_delay_max{0};
};

// Its time may be off from the others'.
class SimClock final : public Clock {
 public:
  SimClock(const Clock& truth, Duration offset) : truth_(truth), offset_(offset) {}
  [[nodiscard]] TimePoint now() const override { return truth_.now() + offset_; }
  [[nodiscard]] int64_t unix_seconds() const override { return truth_.unix_seconds(); }
  void jump(Duration forward) { offset_ += forward; }

 private:
  const Clock& truth_;
  Duration offset_;
};

// Who sends to whom: mail of one channel keeps its order, as from one actor to another.
enum class Channel : uint8_t {
  kCoreToManager,
  kManagerToCore,
  kCoreToDevice,
  kDeviceToCore,
  kTransportToCore,  // also: to the router
  kCoreToItself,
  kTransportToGateway,
};
inline constexpr size_t kChannels = 7;
// Mail that waits in one channel; more means that somebody does not take turns.
inline constexpr size_t kChannelMailMax = 100000;

class Process final : public PeerObserver {
 public:
  struct Options {
    std::string node;
    uint64_t incarnation = 1;
    Duration clock_offset{0};
  };
  Process(const Environment& environment, const Options& options);
  ~Process() override { end(); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Runs `action` then, unless the process has ended; when it is frozen, as soon as it is not.
  void after(Duration delay, EventQueue::Action action);
  // Delivers in the order of the channel, after a delay that the seed decides.
  void mail(Channel channel, EventQueue::Action action);
  // Every interval from now on, at a phase that the seed decides.
  void every(Duration interval, EventQueue::Action action);
  // Hears of each peer that the transport loses. Before that, of none.
  void watch_peers(std::function<void(std::string node, std::string why)> lost);

  void freeze();
  void thaw();
  [[nodiscard]] bool frozen() const { return life_->frozen; }
  // How often it has been frozen: what took its time meanwhile proves nothing.
  [[nodiscard]] uint64_t freezes() const { return freezes_; }

  // As a crash: nothing that was under way comes any more. What the transport still tells when it
  // ends is heard by those who wait for it, but is mail that nobody reads.
  void end();

  [[nodiscard]] const std::string& node() const { return options_.node; }
  [[nodiscard]] uint64_t incarnation() const { return options_.incarnation; }
  [[nodiscard]] SimClock& clock() { return clock_; }
  [[nodiscard]] SimTransport& transport() const { return *transport_; }
  [[nodiscard]] const Environment& environment() const { return environment_; }

  void on_peer_joined(std::string_view node, uint64_t incarnation) override;
  void on_peer_lost(std::string_view node, const Status& why) override;

 private:
  struct Life {
    bool ended = false, frozen = false;
    std::deque<EventQueue::Action> deferred;  // while frozen
  };
  void at(TimePoint time, EventQueue::Action action);

  const Environment environment_;
  const Options options_;
  SimClock clock_;
  const std::shared_ptr<Life> life_ = std::make_shared<Life>();
  std::unique_ptr<SimTransport> transport_;
  std::array<TimePoint, kChannels> last_mail_{};
  std::array<size_t, kChannels> mail_waiting_{};
  std::function<void(std::string, std::string)> lost_;
  uint64_t freezes_ = 0;
};

// Encodes for real, notes what was sent, and is where planted bugs lose mail.
class SimOutbox final : public wire::Outbox {
 public:
  using Watch = std::function<void(const wire::Message&)>;
  // `watch`, if any, sees every message before it is sent.
  explicit SimOutbox(Process& process, Watch watch = nullptr)
      : process_(process), watch_(std::move(watch)), outbox_(process.transport()) {}
  [[nodiscard]] Status send(std::string_view endpoint, const wire::Message& message) override;

 private:
  [[nodiscard]] bool is_lost(const wire::Message& message);

  Process& process_;
  const Watch watch_;
  wire::TransportOutbox outbox_;
};

// Gives what arrives at an endpoint to `take`, as mail.
class SimInbox final : public MessageReceiver {
 public:
  using Take = std::function<void(wire::Message)>;
  // Bound as long as it lives, or until the process's transport has ended.
  SimInbox(Process& process, std::string endpoint, Channel channel, Take take);
  ~SimInbox() override;
  void unbind();
  void on_message(MessageWords words) override;

 private:
  Process& process_;
  const std::string endpoint_;
  const Channel channel_;
  const Take take_;
  bool bound_ = true;
};

}  // namespace troupe::sim
