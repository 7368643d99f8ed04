#pragma once
// One streamed request, between the caller's thread and the client's.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "client/client_loop.h"
#include "schema/serving.capnp.h"
#include "troupe/client/client.h"

namespace troupe::client {

// Any thread. Invariant: what comes after the end is dropped, and the first end counts.
class Stream::Impl final {
 public:
  Impl(std::weak_ptr<ClientLoop> loop, std::chrono::milliseconds chunk_timeout, uint64_t cancel_id,
       uint64_t room_id)
      : loop_(std::move(loop)),
        chunk_timeout_(chunk_timeout),
        cancel_id_(cancel_id),
        room_id_(room_id) {}

  // The caller's side.
  [[nodiscard]] Result<std::optional<std::vector<Choice>>> next();
  void cancel(const Status& status);
  [[nodiscard]] const Answer& answer() const;

  // The loop's side. `waits`: the sink waits for wake(room_id()) before it takes more.
  enum class Room { kMore, kFull };
  [[nodiscard]] Room push(std::vector<Choice> chunk);
  void set_error(Status status);  // what the end's exception means in detail
  void end(Result<Answer> outcome);
  [[nodiscard]] uint64_t cancel_id() const { return cancel_id_; }
  [[nodiscard]] uint64_t room_id() const { return room_id_; }

 private:
  void end_locked(Result<Answer> outcome);
  void wake(uint64_t id);

  const std::weak_ptr<ClientLoop> loop_;
  const std::chrono::milliseconds chunk_timeout_;
  const uint64_t cancel_id_, room_id_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<Choice>> chunks_;
  bool sink_waits_ = false;
  std::optional<Status> error_;
  std::optional<Result<Answer>> outcome_;
};

// What the server calls. On the loop's thread, like its destruction.
class StreamSink final : public rpc::ResponseSink::Server {
 public:
  // `side` outlives the sink.
  StreamSink(LoopSide& side, std::shared_ptr<Stream::Impl> stream)
      : side_(side), stream_(std::move(stream)) {}

  kj::Promise<void> chunk(ChunkContext context) override;
  kj::Promise<void> end(EndContext) override { return kj::READY_NOW; }
  kj::Promise<void> failed(FailedContext context) override;

 private:
  LoopSide& side_;
  std::shared_ptr<Stream::Impl> stream_;
};

}  // namespace troupe::client
