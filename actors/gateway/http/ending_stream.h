#pragma once
// A connection that can be made to look ended to the one who reads it.

#include <kj/async-io.h>

#include <cstddef>
#include <utility>

namespace troupe {

// Passes everything on to the connection that it owns. After end_input() the reader finds the end
// of the stream, whatever the client sends: so KJ's server, which itself goes on reading after a
// response with `Connection: close`, finishes what it has to send and closes. Loop thread only.
class EndingStream final : public kj::AsyncIoStream {
 public:
  explicit EndingStream(kj::Own<kj::AsyncIoStream> inner) : inner_(kj::mv(inner)) {}

  // From the next read on; none may be under way.
  void end_input() { ended_ = true; }

  // Bytes that were read since the latest write.
  [[nodiscard]] size_t unanswered_bytes() const { return unanswered_bytes_; }

  kj::Promise<size_t> read(void* buffer, size_t min, size_t max) override {
    return inner_->read(buffer, min, max);
  }
  kj::Promise<size_t> tryRead(void* buffer, size_t min, size_t max) override {
    if (ended_) return size_t{0};
    return inner_->tryRead(buffer, min, max).then([this](size_t count) {
      unanswered_bytes_ += count;
      return count;
    });
  }
  kj::Promise<void> write(const void* buffer, size_t size) override {
    unanswered_bytes_ = 0;
    return inner_->write(buffer, size);
  }
  kj::Promise<void> write(kj::ArrayPtr<const kj::ArrayPtr<const kj::byte>> pieces) override {
    unanswered_bytes_ = 0;
    return inner_->write(pieces);
  }
  kj::Promise<void> whenWriteDisconnected() override { return inner_->whenWriteDisconnected(); }
  void shutdownWrite() override { inner_->shutdownWrite(); }
  void abortRead() override { inner_->abortRead(); }
  kj::Maybe<int> getFd() const override { return inner_->getFd(); }

 private:
  kj::Own<kj::AsyncIoStream> inner_;
  bool ended_ = false;
  size_t unanswered_bytes_ = 0;
};

}  // namespace troupe
