#include "client/stream.h"

#include <utility>

#include "base/assert.h"
#include "client/convert.h"
#include "client/limits.h"

namespace troupe::client {

Stream::Stream(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Stream::Stream(Stream&&) noexcept = default;

Stream& Stream::operator=(Stream&& other) noexcept {
  if (this == &other) return *this;
  if (impl_ != nullptr) cancel();
  impl_ = std::move(other.impl_);
  return *this;
}

Stream::~Stream() {
  if (impl_ != nullptr) cancel();
}

Result<std::optional<std::vector<Choice>>> Stream::next() {
  return impl_->next();
}

void Stream::cancel() {
  impl_->cancel({StatusCode::kCancelled, "the request was cancelled by its client"});
}

const Answer& Stream::answer() const {
  return impl_->answer();
}

Result<std::optional<std::vector<Choice>>> Stream::Impl::next() {
  std::unique_lock lock(mutex_);
  const bool came = changed_.wait_for(lock, chunk_timeout_,
                                      [this] { return !chunks_.empty() || outcome_.has_value(); });
  if (!came) {
    lock.unlock();
    const Status late(StatusCode::kDeadlineExceeded, "the server gave nothing for " +
                                                         std::to_string(chunk_timeout_.count()) +
                                                         " ms; the request is cancelled");
    cancel(late);
    return late;
  }
  if (!chunks_.empty()) {
    std::vector<Choice> chunk = std::move(chunks_.front());
    chunks_.pop_front();
    const bool resume = std::exchange(sink_waits_, false);
    lock.unlock();
    if (resume) wake(room_id_);
    return std::optional<std::vector<Choice>>(std::move(chunk));
  }
  if (!outcome_->ok()) return outcome_->status();
  return std::optional<std::vector<Choice>>();
}

void Stream::Impl::cancel(const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    if (outcome_) return;
    chunks_.clear();
    end_locked(status);
  }
  wake(cancel_id_);
}

const Answer& Stream::Impl::answer() const {
  const std::lock_guard lock(mutex_);
  TROUPE_ASSERT(outcome_ && outcome_->ok() && chunks_.empty(), chunks_.size());
  return outcome_->value();  // never changes again
}

Stream::Impl::Room Stream::Impl::push(std::vector<Choice> chunk) {
  const std::lock_guard lock(mutex_);
  if (outcome_) return Room::kMore;
  chunks_.push_back(std::move(chunk));
  changed_.notify_one();
  sink_waits_ = chunks_.size() >= kStreamChunksMax;
  return sink_waits_ ? Room::kFull : Room::kMore;
}

void Stream::Impl::set_error(Status status) {
  const std::lock_guard lock(mutex_);
  error_ = std::move(status);
}

void Stream::Impl::end(Result<Answer> outcome) {
  const std::lock_guard lock(mutex_);
  if (!outcome.ok() && error_) outcome = *error_;
  if (!outcome_) end_locked(std::move(outcome));
}

void Stream::Impl::end_locked(Result<Answer> outcome) {
  outcome_ = std::move(outcome);
  changed_.notify_all();
}

// A client that is gone has cancelled everything.
void Stream::Impl::wake(uint64_t id) {
  if (const std::shared_ptr<ClientLoop> loop = loop_.lock()) {
    [[maybe_unused]] const Status told = loop->run([id](LoopSide& side) { side.wake(id); });
  }
}

kj::Promise<void> StreamSink::chunk(ChunkContext context) {
  const auto room = stream_->push(to_choices(context.getParams().getChunk().getChoices()));
  if (room == Stream::Impl::Room::kMore) return kj::READY_NOW;
  return side_.waiting_for(stream_->room_id());
}

kj::Promise<void> StreamSink::failed(FailedContext context) {
  stream_->set_error(to_status(context.getParams().getError()));
  return kj::READY_NOW;
}

}  // namespace troupe::client
