#pragma once
// Listens at a port and hands over each connection, until stopped.

#include <kj/async-io.h>
#include <kj/timer.h>

#include <cstdint>
#include <functional>
#include <string>

#include "troupe/status.h"

namespace troupe {

// Lives on the event loop's thread.
class AcceptLoop final {
 public:
  // Takes a connection that was accepted; must not wait.
  using Take = std::function<void(kj::Own<kj::AsyncIoStream> connection)>;

  // `what` stands in log lines: "HTTP". The references must outlive it.
  AcceptLoop(kj::LowLevelAsyncIoProvider& io, kj::Timer& timer, std::string what, Take take)
      : io_(io), timer_(timer), what_(std::move(what)), take_(std::move(take)) {}

  // Once. The port as bound; errors of open_listen_socket().
  [[nodiscard]] Result<uint16_t> listen(const std::string& host, uint16_t port);
  // Closes the port; connections stay. Harmless when not listening.
  void stop();

 private:
  kj::Promise<void> accept();

  kj::LowLevelAsyncIoProvider& io_;
  kj::Timer& timer_;
  const std::string what_;
  const Take take_;
  kj::Own<kj::ConnectionReceiver> listener_;
  kj::Promise<void> accepting_ = nullptr;
};

}  // namespace troupe
