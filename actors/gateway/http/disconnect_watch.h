#pragma once
// Notices that a client has left while nothing is read from or written to its connection.

#include <kj/async-io.h>
#include <kj/async-unix.h>
#include <kj/io.h>
#include <kj/memory.h>

namespace troupe {

// Loop thread only. KJ itself notices a vanished client only at the second write after the fact,
// and never while there is nothing to write, so the socket is watched beside it, through a
// duplicate of its descriptor (epoll takes each descriptor once).
class DisconnectWatch final {
 public:
  // `connection` has a file descriptor; it need not outlive the watch.
  DisconnectWatch(kj::UnixEventPort& event_port, kj::AsyncIoStream& connection);

  // Rejects with DISCONNECTED once the client has closed, reset, or shut down its sending side (a
  // half-close counts as leaving); never resolves. Pipelined requests behind the present one do not
  // hide it. One promise at a time.
  [[nodiscard]] kj::Promise<void> when_gone();

 private:
  [[nodiscard]] bool is_gone() const;

  kj::AutoCloseFd fd_;
  kj::UnixEventPort::FdObserver observer_;
};

}  // namespace troupe
