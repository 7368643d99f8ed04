#include "client/client_loop.h"

#include <kj/debug.h>

#include <exception>
#include <future>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "client/convert.h"

namespace troupe::client {

struct LoopSide::Connection {
  Connection(kj::Own<kj::AsyncIoStream> stream, const std::string& api_key)
      : socket(kj::mv(stream)),
        network(*socket, capnp::rpc::twoparty::Side::CLIENT),
        system(capnp::makeRpcClient(network)),
        serving(authenticated(api_key)) {}

  rpc::Serving::Client bootstrap() {
    capnp::MallocMessageBuilder message;
    auto server = message.initRoot<capnp::rpc::twoparty::VatId>();
    server.setSide(capnp::rpc::twoparty::Side::SERVER);
    return system.bootstrap(server).castAs<rpc::Serving>();
  }

  // Waits for nothing: calls of what the server will give travel behind the question.
  rpc::Serving::Client authenticated(const std::string& api_key) {
    rpc::Serving::Client server = bootstrap();
    if (api_key.empty()) return server;
    auto request = server.authenticateRequest();
    request.setKey(api_key.c_str());
    return request.send().getServing();
  }

  kj::Own<kj::AsyncIoStream> socket;
  capnp::TwoPartyVatNetwork network;
  capnp::RpcSystem<capnp::rpc::twoparty::VatId> system;
  rpc::Serving::Client serving;
};

LoopSide::LoopSide(kj::AsyncIoContext& io, std::string host, uint16_t port, ClientOptions options)
    : io_(io),
      host_(std::move(host)),
      port_(port),
      options_(std::move(options)),
      tasks_(kj::heap<kj::TaskSet>(static_cast<kj::TaskSet::ErrorHandler&>(*this))) {}

LoopSide::~LoopSide() noexcept {
  tasks_ = nullptr;
  connecting_ = nullptr;
  connection_ = nullptr;
}

kj::Promise<void> LoopSide::connected() {
  if (connection_.get() != nullptr) return kj::READY_NOW;
  if (connecting_.get() == nullptr) {
    connecting_ = kj::heap<kj::ForkedPromise<void>>(connect().fork());
  }
  return connecting_->addBranch();
}

rpc::Serving::Client LoopSide::serving() {
  if (connection_.get() == nullptr) {
    kj::throwFatalException(KJ_EXCEPTION(DISCONNECTED, "the server closed the connection at once"));
  }
  return connection_->serving;
}

kj::Promise<void> LoopSide::connect() {
  const auto limit = options_.connect_timeout.count();
  auto late = timer().afterDelay(limit * kj::MILLISECONDS).then([limit]() -> kj::Promise<void> {
    return kj::Exception(kj::Exception::Type::OVERLOADED, __FILE__, __LINE__,
                         kj::str("not within ", limit, " ms"));
  });
  auto connected = [this](kj::Own<kj::AsyncIoStream> stream) {
    connection_ = kj::heap<Connection>(kj::mv(stream), options_.api_key);
    const Connection* mine = connection_.get();
    // Later, since this object cannot be destroyed from inside itself.
    keep(connection_->network.onDisconnect().then([this, mine] {
      return kj::evalLater([this, mine] {
        if (connection_.get() == mine) connection_ = nullptr;
      });
    }));
  };
  return io_.provider->getNetwork()
      .parseAddress(host_.c_str(), port_)
      .then([](kj::Own<kj::NetworkAddress> address) {
        auto connecting = address->connect();
        return connecting.attach(kj::mv(address));
      })
      .then(std::move(connected))
      .exclusiveJoin(kj::mv(late))
      .catch_([this](kj::Exception&& e) -> kj::Promise<void> {
        return kj::Exception(
            kj::Exception::Type::OVERLOADED, __FILE__, __LINE__,
            kj::str("cannot connect to ", host_.c_str(), ":", port_, ": ", e.getDescription()));
      })
      // The next call tries again. Not now: who waits hangs on this promise.
      .attach(kj::defer([this] {
        if (tasks_.get() != nullptr) keep(kj::evalLater([this] { connecting_ = nullptr; }));
      }));
}

kj::Promise<void> LoopSide::waiting_for(uint64_t id) {
  auto pair = kj::newPromiseAndFulfiller<void>();
  TROUPE_ASSERT(!waiting_.contains(id), id);
  waiting_.emplace(id, kj::mv(pair.fulfiller));
  return kj::mv(pair.promise);
}

void LoopSide::wake(uint64_t id) {
  const auto found = waiting_.find(id);
  if (found == waiting_.end()) return;
  kj::Own<kj::PromiseFulfiller<void>> fulfiller = kj::mv(found->second);
  waiting_.erase(found);
  fulfiller->fulfill();
}

// Outlives the thread. The executor is set before the constructor of ClientLoop returns.
struct ClientLoop::Shared {
  kj::Maybe<kj::Own<const kj::Executor>> executor;
  LoopSide* side = nullptr;  // on the loop's thread only
  kj::PromiseFulfiller<void>* stop = nullptr;
};

ClientLoop::ClientLoop(std::string host, uint16_t port, ClientOptions options)
    : shared_(std::make_shared<Shared>()) {
  std::promise<void> started;
  std::future<void> running = started.get_future();
  thread_ = std::thread([this, &started, host = std::move(host), port, options] {
    std::optional<kj::AsyncIoContext> io;
    try {
      io.emplace(kj::setupAsyncIo());
    } catch (...) {
      return started.set_exception(std::current_exception());
    }
    {
      auto stop = kj::newPromiseAndFulfiller<void>();
      LoopSide side(*io, host, port, options);
      shared_->executor = kj::getCurrentThreadExecutor().addRef();
      shared_->side = &side;
      shared_->stop = stop.fulfiller.get();
      started.set_value();
      stop.promise.wait(io->waitScope);
      shared_->side = nullptr;
    }
    io->waitScope.poll();  // calls of the connection that is gone end now
  });
  try {
    running.get();  // a thread's start
  } catch (...) {
    thread_.join();
    throw;
  }
}

ClientLoop::~ClientLoop() {
  stop();
}

Status ClientLoop::run(const std::function<void(LoopSide&)>& work) {
  const Status ended(StatusCode::kCancelled, "the client is being destroyed");
  bool ran = false;
  const auto failed = kj::runCatchingExceptions([&] {
    KJ_ASSERT_NONNULL(shared_->executor)->executeSync([&] {
      if (shared_->side == nullptr) return;
      ran = true;
      work(*shared_->side);
    });
  });
  if (ran && failed != nullptr) return to_status(KJ_ASSERT_NONNULL(failed));
  return ran ? ok_status() : ended;
}

void ClientLoop::stop() {
  if (!thread_.joinable()) return;
  TROUPE_ASSERT(thread_.get_id() != std::this_thread::get_id(), "on the loop's own thread");
  [[maybe_unused]] const Status told = run([this](LoopSide&) { shared_->stop->fulfill(); });
  thread_.join();
}

}  // namespace troupe::client
