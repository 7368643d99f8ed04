#include "actors/gateway/event_loop_inbox.h"

#include <kj/debug.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace troupe {
namespace {

int make_event_fd() {
  int fd = -1;
  KJ_SYSCALL(fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  return fd;
}

}  // namespace

EventLoopInbox::EventLoopInbox(kj::UnixEventPort& port, Handler handler)
    : wake_fd_(make_event_fd()),
      observer_(kj::heap<kj::UnixEventPort::FdObserver>(
          port, wake_fd_, kj::UnixEventPort::FdObserver::OBSERVE_READ)),
      handler_(std::move(handler)) {}

EventLoopInbox::~EventLoopInbox() noexcept {
  observer_ = nullptr;  // before the descriptor that it watches
  close(wake_fd_);
}

void EventLoopInbox::on_message(MessageWords words) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    wake = queue_.empty();
    queue_.push_back(std::move(words));
  }
  // It can only fail when the counter is full, and then the loop is awake already.
  if (wake) [[maybe_unused]]
    const int written = eventfd_write(wake_fd_, 1);
}

kj::Promise<void> EventLoopInbox::run() {
  return observer_->whenBecomesReadable().then([this] {
    eventfd_t count = 0;
    [[maybe_unused]] const int read = eventfd_read(wake_fd_, &count);
    drain();
    return run();
  });
}

void EventLoopInbox::drain() {
  std::vector<MessageWords> batch;
  {
    const std::lock_guard lock(mutex_);
    batch.swap(queue_);
  }
  for (const MessageWords& words : batch) handler_(words);
}

}  // namespace troupe
