#include "actors/gateway/http/disconnect_watch.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <poll.h>

namespace troupe {

namespace {

int duplicate(kj::AsyncIoStream& connection) {
  int fd = -1;
  KJ_IF_MAYBE (original, connection.getFd()) {
    KJ_SYSCALL(fd = fcntl(*original, F_DUPFD_CLOEXEC, 0));
    return fd;
  }
  KJ_FAIL_REQUIRE("a connection without a file descriptor cannot be watched");
}

}  // namespace

DisconnectWatch::DisconnectWatch(kj::UnixEventPort& event_port, kj::AsyncIoStream& connection)
    : fd_(duplicate(connection)),
      observer_(event_port, fd_, kj::UnixEventPort::FdObserver::OBSERVE_READ) {}

kj::Promise<void> DisconnectWatch::when_gone() {
  // Asked before each wait: the event of a hang-up comes only once and may have come between two
  // requests.
  if (is_gone()) return KJ_EXCEPTION(DISCONNECTED, "the client left");
  return observer_.whenBecomesReadable().then([this] { return when_gone(); });
}

bool DisconnectWatch::is_gone() const {
  struct pollfd poll_fd = {fd_.get(), POLLRDHUP, 0};
  return poll(&poll_fd, 1, 0) > 0 && (poll_fd.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

}  // namespace troupe
