#pragma once
// How other threads reach the gateway's event loop: a bounded queue and an eventfd that wakes it.

#include <kj/async-unix.h>

#include <functional>
#include <mutex>
#include <vector>

#include "troupe/transport.h"

namespace troupe {

// Made and destroyed on the loop's thread; on_message() may come from any other.
class EventLoopInbox final : public MessageReceiver {
 public:
  using Handler = std::function<void(const MessageWords&)>;

  // `handler` is called on the loop's thread, once per message and in order.
  EventLoopInbox(kj::UnixEventPort& port, Handler handler);
  ~EventLoopInbox() noexcept override;
  EventLoopInbox(const EventLoopInbox&) = delete;
  EventLoopInbox& operator=(const EventLoopInbox&) = delete;

  // Never blocks. Unbounded in itself; what can be in it is bounded by the requests in flight, of
  // which each step of a worker emits at most one message, and by the router's heartbeats.
  void on_message(MessageWords words) override;

  // Resolves never; keep it as long as the loop should take messages. A failure to wait ends it.
  [[nodiscard]] kj::Promise<void> run();

 private:
  void drain();

  int wake_fd_;
  // By pointer: KJ's observer may throw from its destructor, a receiver's may not.
  kj::Own<kj::UnixEventPort::FdObserver> observer_;
  Handler handler_;
  std::mutex mutex_;
  std::vector<MessageWords> queue_;
};

}  // namespace troupe
