#include "actors/gateway/rpc/rpc_frontend.h"

#include <arpa/inet.h>
#include <capnp/rpc-twoparty.h>
#include <glog/logging.h>
#include <kj/debug.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "actors/gateway/http/accept_loop.h"
#include "actors/gateway/rpc/rpc_context.h"
#include "actors/gateway/rpc/rpc_exchange.h"
#include "actors/gateway/rpc/rpc_limits.h"
#include "actors/gateway/rpc/rpc_message_stream.h"
#include "actors/gateway/rpc/serving_service.h"
#include "base/assert.h"

namespace troupe {

namespace {

// Between looks at whether everything has been given, while draining.
constexpr kj::Duration kDrainPoll = 5 * kj::MILLISECONDS;

// "127.0.0.1:4711", for log lines.
std::string peer_name(kj::AsyncIoStream& connection) {
  sockaddr_storage address{};
  kj::uint length = sizeof address;
  connection.getpeername(reinterpret_cast<sockaddr*>(&address), &length);
  char text[INET6_ADDRSTRLEN] = "?";
  if (address.ss_family == AF_INET) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &in.sin_addr, text, sizeof text);
    return text + (":" + std::to_string(ntohs(in.sin_port)));
  }
  if (address.ss_family == AF_INET6) {
    const auto& in = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &in.sin6_addr, text, sizeof text);
    return "[" + std::string(text) + "]:" + std::to_string(ntohs(in.sin6_port));
  }
  return "of unknown address";
}

// A client whose machine vanished without a word is found out by the kernel.
void keep_alive(kj::AsyncIoStream& connection) {
  const auto set = [&](int level, int option, int value) {
    connection.setsockopt(level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kRpcKeepAliveIdleS);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kRpcKeepAliveIntervalS);
  set(IPPROTO_TCP, TCP_KEEPCNT, kRpcKeepAliveProbes);
}

}  // namespace

class RpcFrontend::Impl final : private kj::TaskSet::ErrorHandler {
 public:
  Impl(kj::LowLevelAsyncIoProvider& io, RpcContext context)
      : context_(std::move(context)),
        bootstrap_(kj::heap<ServingService>(context_, ServingService::Access::kUntilKeyIsGiven)),
        connections_(make_task_set()),
        accept_loop_(io, context_.timer, "RPC",
                     [this](kj::Own<kj::AsyncIoStream> connection) { take(kj::mv(connection)); }) {}

  ~Impl() noexcept {
    accept_loop_.stop();
    connections_ = nullptr;
    while (!context_.exchanges.empty()) {
      RpcExchange* exchange = *context_.exchanges.begin();
      context_.exchanges.erase(exchange);
      exchange->orphan();
    }
  }

  Result<uint16_t> listen(const std::string& host, uint16_t port) {
    return accept_loop_.listen(host, port);
  }

  kj::Promise<void> drain(Duration grace) {
    accept_loop_.stop();
    context_.draining = true;
    const kj::Duration limit = static_cast<int64_t>(grace.count()) * kj::NANOSECONDS;
    const kj::Duration flush = context_.load.limits().abort_flush.count() * kj::MILLISECONDS;
    auto late = context_.timer.afterDelay(limit).then([this, flush] {
      abort_exchanges();
      return context_.timer.afterDelay(flush);
    });
    // Whatever happens, a client that does not read delays the end by no more than the flush time.
    return until([this] { return context_.exchanges.empty(); })
        .exclusiveJoin(kj::mv(late))
        .then([this, flush] {
          return until([this] { return all_sent(); })
              .exclusiveJoin(context_.timer.afterDelay(flush));
        })
        .then([this, flush] {
          connections_ = nullptr;
          return until([this] { return context_.exchanges.empty(); })
              .exclusiveJoin(context_.timer.afterDelay(flush));
        });
  }

  [[nodiscard]] uint32_t open_connections() const { return static_cast<uint32_t>(open_.size()); }
  [[nodiscard]] uint32_t running_generations() const {
    return static_cast<uint32_t>(context_.exchanges.size());
  }

 private:
  struct Connection {
    Connection(Impl& impl, LoadTicket ticket, kj::Own<kj::AsyncIoStream> socket)
        : impl(impl),
          ticket(std::move(ticket)),
          socket(kj::mv(socket)),
          messages(*this->socket, impl.context_.timer, impl.context_.load.limits(),
                   peer_name(*this->socket)),
          network(messages, capnp::rpc::twoparty::Side::SERVER),
          system(capnp::makeRpcServer(network, impl.bootstrap_)) {
      impl.open_.insert(this);
    }
    ~Connection() { impl.open_.erase(this); }

    Impl& impl;
    LoadTicket ticket;
    kj::Own<kj::AsyncIoStream> socket;
    RpcMessageStream messages;
    capnp::TwoPartyVatNetwork network;
    capnp::RpcSystem<capnp::rpc::twoparty::VatId> system;
  };

  kj::Own<kj::TaskSet> make_task_set() {
    return kj::heap<kj::TaskSet>(static_cast<kj::TaskSet::ErrorHandler&>(*this));
  }

  void take(kj::Own<kj::AsyncIoStream> socket) {
    std::optional<LoadTicket> ticket = context_.load.open_connection();
    if (!ticket) {
      LOG(WARNING) << "rpc client " << peer_name(*socket) << " is refused: there are "
                   << context_.load.connections() << " connections, as many as this server takes";
      return;
    }
    keep_alive(*socket);
    auto connection = kj::heap<Connection>(*this, std::move(*ticket), kj::mv(socket));
    kj::Promise<void> gone = connection->network.onDisconnect();
    connections_->add(gone.attach(kj::mv(connection)));
  }

  kj::Promise<void> until(std::function<bool()> condition) {
    if (condition()) return kj::READY_NOW;
    return context_.timer.afterDelay(kDrainPoll).then([this, condition = std::move(condition)] {
      return until(condition);
    });
  }

  [[nodiscard]] bool all_sent() {
    return std::all_of(open_.begin(), open_.end(),
                       [](Connection* c) { return c->network.getCurrentQueueCount() == 0; });
  }

  void abort_exchanges() {
    // An aborted exchange leaves the set when its promise is destroyed, not before.
    for (RpcExchange* exchange : context_.exchanges) {
      exchange->abort({StatusCode::kUnavailable, "the server is shutting down; try again soon"});
    }
  }

  void taskFailed(kj::Exception&& e) override {
    VLOG(1) << "rpc connection ended: " << kj::str(e.getDescription()).cStr();
  }

  RpcContext context_;
  rpc::Serving::Client bootstrap_;
  std::set<Connection*> open_;
  kj::Own<kj::TaskSet> connections_;
  AcceptLoop accept_loop_;
};

RpcFrontend::RpcFrontend(kj::LowLevelAsyncIoProvider& io, kj::Timer& timer, Generator& generator,
                         const ModelCatalogue& models, const HealthSource& health,
                         const Clock& clock, FrontendLoad& load, std::string version,
                         const ApiKeys* keys)
    : impl_(std::make_unique<Impl>(io, RpcContext{timer, generator, models, health, clock, load,
                                                  std::move(version), keys})) {}

RpcFrontend::~RpcFrontend() = default;

Result<uint16_t> RpcFrontend::listen(const std::string& host, uint16_t port) {
  return impl_->listen(host, port);
}

kj::Promise<void> RpcFrontend::drain(Duration grace) {
  return impl_->drain(grace);
}

uint32_t RpcFrontend::open_connections() const {
  return impl_->open_connections();
}

uint32_t RpcFrontend::running_generations() const {
  return impl_->running_generations();
}

}  // namespace troupe
