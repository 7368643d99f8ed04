#pragma once
// A real RPC front end on a thread of its own, with a generator that repeats one token.

#include <kj/async-io.h>
#include <kj/debug.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "actors/gateway/rpc/rpc_frontend.h"
#include "tests/unit/actors/gateway/openai/tiny_model.h"

namespace troupe::test {

// Counts on one thread what another one waits for.
class Counter final {
 public:
  void add(int count) {
    const std::lock_guard lock(mutex_);
    count_ += count;
    changed_.notify_all();
  }
  // Only a test that fails waits so long.
  [[nodiscard]] bool reaches(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return count_ == count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

// Gives each choice max_tokens tokens "x", one per interval; or the bytes of a text, then an end.
class RepeatingGenerator final : public Generator, private kj::TaskSet::ErrorHandler {
 public:
  RepeatingGenerator(kj::Timer& timer, std::atomic<int64_t>& interval_us, Counter& cancelled,
                     std::string text)
      : timer_(timer),
        interval_us_(interval_us),
        text_(std::move(text)),
        cancelled_(cancelled),
        tasks_(kj::heap<kj::TaskSet>(static_cast<kj::TaskSet::ErrorHandler&>(*this))) {}
  ~RepeatingGenerator() noexcept override { tasks_ = nullptr; }

  Result<RequestId> submit(GenerationRequest request, GenerationListener& listener) override {
    const uint64_t id = ++ids_;
    const uint32_t length =
        text_.empty() ? request.choices[0].max_tokens : static_cast<uint32_t>(text_.size());
    running_[id] = {&listener, static_cast<uint32_t>(request.choices.size()), length,
                    static_cast<uint32_t>(request.prompt.size())};
    tasks_->add(step(id));
    return RequestId(id);
  }
  void cancel(RequestId id) override { cancelled_.add(static_cast<int>(running_.erase(id.value))); }
  GenerationUsage cancel_choice(RequestId id, uint32_t /*choice*/) override {
    cancel(id);
    return {};
  }

 private:
  struct Running {
    GenerationListener* listener;
    uint32_t choices, left, prompt_tokens;
  };

  kj::Promise<void> step(uint64_t id) {
    return timer_.afterDelay(interval_us_.load() * kj::MICROSECONDS)
        .then([this, id]() -> kj::Promise<void> {
          const auto found = running_.find(id);
          if (found == running_.end()) return kj::READY_NOW;
          Running& running = found->second;
          const char c = text_.empty() ? 'x' : text_[text_.size() - running.left];
          const SampledToken token{static_cast<uint8_t>(c), -0.5F, {}};
          GenerationListener& listener = *running.listener;
          const auto [_, choices, left, prompt_tokens] = running;
          --running.left;
          if (left > 1) {
            for (uint32_t c = 0; c < choices; ++c) listener.on_tokens(c, {&token, 1});
            return step(id);
          }
          running_.erase(found);
          for (uint32_t c = 0; c < choices; ++c) {
            listener.on_tokens(c, {&token, 1});
            listener.on_finished(c, text_.empty() ? FinishReason::kLength : FinishReason::kStop, -1,
                                 {prompt_tokens, 0});
          }
          return kj::READY_NOW;
        });
  }
  void taskFailed(kj::Exception&& e) override { BOOST_ERROR(kj::str(e).cStr()); }

  kj::Timer& timer_;
  std::atomic<int64_t>& interval_us_;
  const std::string text_;
  Counter& cancelled_;
  uint64_t ids_ = 0;
  std::map<uint64_t, Running> running_;
  kj::Own<kj::TaskSet> tasks_;
};

class ServerThread final {
 public:
  ServerThread() { std::signal(SIGPIPE, SIG_IGN); }
  // A model with this template says this text.
  ServerThread(std::string chat_template, std::string text)
      : template_(std::move(chat_template)), text_(std::move(text)) {
    std::signal(SIGPIPE, SIG_IGN);
  }
  ~ServerThread() { stop(); }

  // Listens on `port`; 0: a free one.
  void start() {
    std::promise<void> listening;
    thread_ = std::thread([this, &listening] { serve(listening); });
    listening.get_future().get();
  }
  void stop() {
    if (!thread_.joinable()) return;
    executor_->executeSync([this] { stop_->fulfill(); });
    thread_.join();
  }

  std::atomic<int64_t> interval_us = 100;
  Counter cancelled;
  std::atomic<bool> healthy = true;
  uint16_t port = 0;

 private:
  struct Health final : HealthSource {
    explicit Health(const std::atomic<bool>& healthy) : healthy(healthy) {}
    [[nodiscard]] Status health() const override {
      return healthy ? ok_status() : Status(StatusCode::kUnavailable, "not now");
    }
    const std::atomic<bool>& healthy;
  };

  void serve(std::promise<void>& listening) {
    kj::AsyncIoContext io = kj::setupAsyncIo();
    auto stop = kj::newPromiseAndFulfiller<void>();
    stop_ = kj::mv(stop.fulfiller);
    executor_ = kj::getCurrentThreadExecutor().addRef();
    TinyModel model = template_.empty() ? TinyModel() : TinyModel(template_);
    ManualClock clock;
    Health health(healthy);
    FrontendLoad load({}, 42);
    RepeatingGenerator generator(io.provider->getTimer(), interval_us, cancelled, text_);
    {
      RpcFrontend frontend(*io.lowLevelProvider, io.provider->getTimer(), generator,
                           model.catalogue(), health, clock, load, "1.2.3");
      port = frontend.listen("127.0.0.1", port).value();
      listening.set_value();
      stop.promise.wait(io.waitScope);
    }
    io.waitScope.poll();
    stop_ = nullptr;
  }

  const std::string template_, text_;
  kj::Own<const kj::Executor> executor_;
  kj::Own<kj::PromiseFulfiller<void>> stop_;  // on the server's thread
  std::thread thread_;
};

}  // namespace troupe::test
