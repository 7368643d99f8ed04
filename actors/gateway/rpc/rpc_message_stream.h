#pragma once
// The messages of one RPC connection, within their limits of size and time.

#include <capnp/serialize-async.h>
#include <kj/async-io.h>
#include <kj/timer.h>

#include <cstdint>
#include <string>
#include <vector>

#include "actors/gateway/frontend_limits.h"

namespace troupe {

// Loop thread only. What is wrong with what a client sends is logged here, in one line; the RPC
// system then ends the connection.
class RpcMessageStream final : public capnp::MessageStream {
 public:
  // `connection`, `timer` and `limits` outlive the stream. `peer` names the client in log lines.
  RpcMessageStream(kj::AsyncIoStream& connection, kj::Timer& timer, const FrontendLimits& limits,
                   std::string peer);
  ~RpcMessageStream() noexcept;

  // Waits while a message that the client does not take is being written: who does not read the
  // answers is not asked for more requests. Rejects: the message is too large, or no message, or
  // did not come whole within the body timeout.
  kj::Promise<kj::Maybe<capnp::MessageReaderAndFds>> tryReadMessage(
      kj::ArrayPtr<kj::AutoCloseFd> fd_space, capnp::ReaderOptions options,
      kj::ArrayPtr<capnp::word> scratch) override;
  // Rejects when the client does not take it within the write timeout.
  kj::Promise<void> writeMessage(
      kj::ArrayPtr<const int> fds,
      kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>> segments) override;
  kj::Promise<void> writeMessages(
      kj::ArrayPtr<kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>>> messages) override;
  // The window of each stream's flow control.
  kj::Maybe<int> getSendBufferSize() override;
  kj::Promise<void> end() override;

 private:
  class FirstByteStream;

  [[nodiscard]] kj::Promise<void> write_in_time(kj::Promise<void> write);
  [[nodiscard]] kj::Promise<void> until_written();
  [[nodiscard]] kj::Promise<kj::Maybe<capnp::MessageReaderAndFds>> read(
      kj::ArrayPtr<kj::AutoCloseFd> fd_space, capnp::ReaderOptions options,
      kj::ArrayPtr<capnp::word> scratch);
  void on_written();

  kj::Timer& timer_;
  const FrontendLimits& limits_;
  const std::string peer_;
  kj::Own<FirstByteStream> bytes_;
  capnp::AsyncIoMessageStream messages_;
  uint32_t writing_ = 0;
  kj::Own<kj::PromiseFulfiller<void>> written_;  // who waits for the end of all writes
};

}  // namespace troupe
