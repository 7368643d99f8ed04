#include "actors/gateway/rpc/rpc_message_stream.h"

#include <glog/logging.h>
#include <kj/debug.h>

#include <cstring>
#include <utility>

#include "actors/gateway/openai/request_limits.h"
#include "actors/gateway/rpc/rpc_limits.h"
#include "actors/gateway/text/escape.h"
#include "base/assert.h"

namespace troupe {

namespace {

kj::Duration to_kj(std::chrono::milliseconds duration) {
  return duration.count() * kj::MILLISECONDS;
}

}  // namespace

// Passes everything on, and tells when the first byte of a message has come: a client may be silent
// as long as it likes, but not in the middle of a message.
class RpcMessageStream::FirstByteStream final : public kj::AsyncIoStream {
 public:
  explicit FirstByteStream(kj::AsyncIoStream& inner) : inner_(inner) {}

  [[nodiscard]] kj::Promise<void> when_begun() {
    auto pair = kj::newPromiseAndFulfiller<void>();
    begun_ = kj::mv(pair.fulfiller);
    return kj::mv(pair.promise);
  }

  kj::Promise<size_t> read(void* buffer, size_t min, size_t max) override {
    return tryRead(buffer, min, max).then([min](size_t count) {
      KJ_REQUIRE(count >= min, "the connection ended in the middle of a message");
      return count;
    });
  }
  kj::Promise<size_t> tryRead(void* buffer, size_t min, size_t max) override {
    if (begun_.get() == nullptr) return inner_.tryRead(buffer, min, max);
    return inner_.tryRead(buffer, 1, max)
        .then([this, buffer, min, max](size_t count) -> kj::Promise<size_t> {
          if (count == 0) return count;
          if (begun_.get() != nullptr)
            kj::Own<kj::PromiseFulfiller<void>>(kj::mv(begun_))->fulfill();
          if (count >= min) return count;
          return inner_.tryRead(static_cast<uint8_t*>(buffer) + count, min - count, max - count)
              .then([count](size_t more) { return count + more; });
        })
        .then([buffer](size_t count) {
          check_segment_count(buffer, count);
          return count;
        });
  }
  kj::Promise<void> write(const void* buffer, size_t size) override {
    return inner_.write(buffer, size);
  }
  kj::Promise<void> write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) override {
    return inner_.write(pieces);
  }
  kj::Promise<void> whenWriteDisconnected() override { return inner_.whenWriteDisconnected(); }
  void shutdownWrite() override { inner_.shutdownWrite(); }
  void abortRead() override { inner_.abortRead(); }

 private:
  // A message begins with the number of its segments less one. The library (0.9.2) adds the one
  // without a look at the carry, and then writes the first of no segments.
  static void check_segment_count(const void* bytes, size_t count) {
    uint32_t last_segment = 0;
    if (count < sizeof last_segment) return;
    std::memcpy(&last_segment, bytes, sizeof last_segment);
    KJ_REQUIRE(last_segment != UINT32_MAX, "a message cannot have 2^32 segments");
  }

  kj::AsyncIoStream& inner_;
  kj::Own<kj::PromiseFulfiller<void>> begun_;
};

RpcMessageStream::RpcMessageStream(kj::AsyncIoStream& connection, kj::Timer& timer,
                                   const FrontendLimits& limits, std::string peer)
    : timer_(timer),
      limits_(limits),
      peer_(std::move(peer)),
      bytes_(kj::heap<FirstByteStream>(connection)),
      messages_(*bytes_) {}

RpcMessageStream::~RpcMessageStream() noexcept = default;

kj::Promise<kj::Maybe<capnp::MessageReaderAndFds>> RpcMessageStream::tryReadMessage(
    kj::ArrayPtr<kj::AutoCloseFd> fd_space, capnp::ReaderOptions options,
    kj::ArrayPtr<capnp::word> scratch) {
  // Smaller than what may be sent: an answer with all log-probabilities can be large.
  options.traversalLimitInWords = kRpcMessageBodies * limits_.body_bytes_max / sizeof(capnp::word);
  return until_written()
      .then([this, fd_space, options, scratch] { return read(fd_space, options, scratch); })
      .catch_([this](kj::Exception&& e) -> kj::Promise<kj::Maybe<capnp::MessageReaderAndFds>> {
        const std::string_view text(e.getDescription().begin(), e.getDescription().size());
        if (e.getType() == kj::Exception::Type::DISCONNECTED) {
          VLOG(1) << "rpc client " << peer_ << " is gone: " << printable_excerpt(text, 200);
        } else {
          LOG(WARNING) << "rpc client " << peer_
                       << " sends what is no message for this port, and is "
                       << "cut: " << printable_excerpt(text, kErrorBytesMax);
        }
        return kj::mv(e);
      });
}

kj::Promise<kj::Maybe<capnp::MessageReaderAndFds>> RpcMessageStream::read(
    kj::ArrayPtr<kj::AutoCloseFd> fd_space, capnp::ReaderOptions options,
    kj::ArrayPtr<capnp::word> scratch) {
  using Read = kj::Maybe<capnp::MessageReaderAndFds>;
  auto late = bytes_->when_begun()
                  .then([this] { return timer_.afterDelay(to_kj(limits_.body_timeout)); })
                  .then([]() -> kj::Promise<Read> {
                    return KJ_EXCEPTION(FAILED, "a message did not come whole in time");
                  });
  return messages_.tryReadMessage(fd_space, options, scratch).exclusiveJoin(kj::mv(late));
}

kj::Promise<void> RpcMessageStream::until_written() {
  if (writing_ == 0) return kj::READY_NOW;
  auto pair = kj::newPromiseAndFulfiller<void>();
  written_ = kj::mv(pair.fulfiller);
  return kj::mv(pair.promise);
}

void RpcMessageStream::on_written() {
  TROUPE_ASSERT(writing_ > 0, peer_);
  if (--writing_ > 0 || written_.get() == nullptr) return;
  kj::Own<kj::PromiseFulfiller<void>> written = kj::mv(written_);
  written->fulfill();
}

kj::Promise<void> RpcMessageStream::write_in_time(kj::Promise<void> write) {
  ++writing_;
  auto late = timer_.afterDelay(to_kj(limits_.write_timeout)).then([]() -> kj::Promise<void> {
    return KJ_EXCEPTION(DISCONNECTED, "the client does not read");
  });
  return write.exclusiveJoin(kj::mv(late)).attach(kj::defer([this] { on_written(); }));
}

kj::Promise<void> RpcMessageStream::writeMessage(
    kj::ArrayPtr<const int> fds, kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>> segments) {
  return write_in_time(messages_.writeMessage(fds, segments));
}

kj::Promise<void> RpcMessageStream::writeMessages(
    kj::ArrayPtr<kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>>> messages) {
  return write_in_time(messages_.writeMessages(messages));
}

kj::Maybe<int> RpcMessageStream::getSendBufferSize() {
  return static_cast<int>(kRpcStreamWindowBytes);
}

kj::Promise<void> RpcMessageStream::end() {
  return messages_.end();
}

}  // namespace troupe
