#pragma once
// A gateway core on its event loop: takes its messages, ticks.

#include <kj/async-unix.h>
#include <kj/timer.h>

#include <functional>
#include <optional>

#include "actors/gateway/event_loop_inbox.h"
#include "actors/gateway/gateway_core.h"

namespace troupe {

// Lives on the loop's thread.
class GatewayLoop final {
 public:
  using OnHealth = std::function<void(const wire::Health&)>;
  using OnDescribed = std::function<void(wire::Described)>;

  // All references must outlive it.
  GatewayLoop(const Clock& clock, wire::Outbox& outbox, ServingMetrics& metrics,
              GatewayOptions options, kj::UnixEventPort& event_port, kj::Timer& timer);
  GatewayLoop(const GatewayLoop&) = delete;
  GatewayLoop& operator=(const GatewayLoop&) = delete;

  [[nodiscard]] GatewayCore& core() { return core_; }
  [[nodiscard]] const GatewayCore& core() const { return core_; }
  // Of the gateway's endpoint; unbind it before this object dies.
  [[nodiscard]] MessageReceiver& inbox() { return inbox_; }
  // What else those messages are for; before start().
  void set_observers(OnHealth on_health, OnDescribed on_described);
  // From now on messages are taken, until stop().
  void start();
  void stop() { loop_.reset(); }

 private:
  void on_message(const MessageWords& words);
  [[nodiscard]] kj::Promise<void> tick();

  kj::Timer& timer_;
  GatewayCore core_;
  EventLoopInbox inbox_;
  OnHealth on_health_;
  OnDescribed on_described_;
  std::optional<kj::Promise<void>> loop_;
};

}  // namespace troupe
