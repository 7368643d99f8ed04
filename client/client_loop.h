#pragma once
// The client's thread: an event loop with one connection to one server.

#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>
#include <kj/async.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "schema/serving.capnp.h"
#include "troupe/client/client.h"

namespace troupe::client {

// Part of the loop's thread; what a task needs of it. All functions on that thread only.
class LoopSide final : private kj::TaskSet::ErrorHandler {
 public:
  LoopSide(kj::AsyncIoContext& io, std::string host, uint16_t port, ClientOptions options);
  ~LoopSide() noexcept;

  // Resolves when there is a connection, at once where there is one already.
  [[nodiscard]] kj::Promise<void> connected();
  // The server's interface. Throws DISCONNECTED where there is no connection any more.
  [[nodiscard]] rpc::Serving::Client serving();
  // Keeps the task until it ends or the loop does.
  void keep(kj::Promise<void> task) { tasks_->add(kj::mv(task)); }
  // A promise that is fulfilled by wake(id), at most once; `id` is new.
  [[nodiscard]] kj::Promise<void> waiting_for(uint64_t id);
  void wake(uint64_t id);
  void forget(uint64_t id) { waiting_.erase(id); }
  [[nodiscard]] kj::Timer& timer() { return io_.provider->getTimer(); }
  [[nodiscard]] const ClientOptions& options() const { return options_; }

 private:
  struct Connection;

  [[nodiscard]] kj::Promise<void> connect();
  void taskFailed(kj::Exception&&) override {}  // each task tells its own caller

  kj::AsyncIoContext& io_;
  const std::string host_;
  const uint16_t port_;
  const ClientOptions options_;
  std::map<uint64_t, kj::Own<kj::PromiseFulfiller<void>>> waiting_;
  kj::Own<Connection> connection_;  // null: none
  kj::Own<kj::ForkedPromise<void>> connecting_;
  kj::Own<kj::TaskSet> tasks_;
};

// From any thread, except where said otherwise.
class ClientLoop final {
 public:
  // Throws what the system says where it has no thread or no descriptors left.
  ClientLoop(std::string host, uint16_t port, ClientOptions options);
  ~ClientLoop();
  ClientLoop(const ClientLoop&) = delete;
  ClientLoop& operator=(const ClientLoop&) = delete;

  // Runs `work` on the loop's thread and waits for it, which takes no longer than the loop's turn:
  // nothing there blocks. kCancelled: the loop has ended, nothing was run.
  [[nodiscard]] Status run(const std::function<void(LoopSide&)>& work);
  // Cancels all tasks and ends the thread. Once.
  void stop();
  [[nodiscard]] uint64_t next_id() { return ++ids_; }

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  std::atomic<uint64_t> ids_ = 0;
  std::thread thread_;
};

}  // namespace troupe::client
