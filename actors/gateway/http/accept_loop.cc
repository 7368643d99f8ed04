#include "actors/gateway/http/accept_loop.h"

#include <glog/logging.h>

#include "actors/gateway/http/listen_socket.h"
#include "base/assert.h"

namespace troupe {
namespace {

constexpr kj::Duration kAcceptRetryDelay = 100 * kj::MILLISECONDS;

}  // namespace

Result<uint16_t> AcceptLoop::listen(const std::string& host, uint16_t port) {
  TROUPE_ASSERT(listener_.get() == nullptr, host, port);
  TROUPE_ASSIGN_OR_RETURN(ListenSocket socket, open_listen_socket(host, port));
  listener_ =
      io_.wrapListenSocketFd(kj::mv(socket.fd), kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC |
                                                    kj::LowLevelAsyncIoProvider::ALREADY_NONBLOCK);
  accepting_ = accept().eagerlyEvaluate([this](kj::Exception&& e) {
    LOG(ERROR) << "the " << what_ << " port takes no more connections: " << kj::str(e).cStr();
  });
  return socket.port;
}

void AcceptLoop::stop() {
  accepting_ = nullptr;
  listener_ = nullptr;
}

kj::Promise<void> AcceptLoop::accept() {
  return listener_->accept()
      .then(
          [this](kj::Own<kj::AsyncIoStream> connection) -> kj::Promise<void> {
            take_(kj::mv(connection));
            return kj::READY_NOW;
          },
          // Such as too many open files: passes when connections close.
          [this](kj::Exception&& e) -> kj::Promise<void> {
            LOG(ERROR) << "cannot accept a connection: " << kj::str(e.getDescription()).cStr();
            return timer_.afterDelay(kAcceptRetryDelay);
          })
      .then([this] { return accept(); });
}

}  // namespace troupe
