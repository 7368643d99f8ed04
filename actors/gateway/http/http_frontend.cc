#include "actors/gateway/http/http_frontend.h"

#include <glog/logging.h>
#include <kj/compat/http.h>
#include <kj/debug.h>

#include <cstring>
#include <optional>
#include <utility>

#include "actors/gateway/http/accept_loop.h"
#include "actors/gateway/http/closing_service.h"
#include "actors/gateway/http/exchange.h"
#include "actors/gateway/http/http_context.h"
#include "actors/gateway/http/http_service.h"
#include "base/assert.h"

namespace troupe {

namespace {

// How long, and for how many bytes, a connection that has been answered for good is read to its
// end.
constexpr kj::Duration kLingerTime = 1 * kj::SECONDS;
constexpr size_t kLingerBytesMax = size_t{16} << 20;
constexpr size_t kLingerReadBytes = 16384;

// A whole answer to a connection from which no request could be read.
std::string last_words(const char* status, const char* fields, const ApiError& error) {
  const std::string body = format_error(error);
  return std::string("HTTP/1.1 ") + status + "\r\nConnection: close\r\n" + fields +
         "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

std::string too_many_connections() {
  return last_words("503 Service Unavailable", "Retry-After: 1\r\n",
                    {503, "service_unavailable", "too_many_connections",
                     "this server has as many connections as it takes; try again soon", "", 1});
}

std::string header_too_large() {
  return last_words("431 Request Header Fields Too Large", "",
                    {431, "invalid_request_error", "invalid_http",
                     "the request's header must have at most 128 KiB; send less", "", 0});
}

kj::Duration to_kj(std::chrono::milliseconds duration) {
  return duration.count() * kj::MILLISECONDS;
}

}  // namespace

class HttpFrontend::Impl final : private kj::TaskSet::ErrorHandler,
                                 private kj::HttpServerErrorHandler,
                                 private kj::HttpServerCallbacks {
 public:
  Impl(kj::LowLevelAsyncIoProvider& io, HttpContext context)
      : context_(std::move(context)),
        connections_(make_task_set()),
        accept_loop_(io, context_.timer, "HTTP",
                     [this](kj::Own<kj::AsyncIoStream> connection) { take(kj::mv(connection)); }) {
    kj::HttpServerSettings settings;
    settings.headerTimeout = to_kj(context_.load.limits().header_timeout);
    settings.pipelineTimeout = to_kj(context_.load.limits().keep_alive);
    settings.errorHandler = static_cast<kj::HttpServerErrorHandler&>(*this);
    settings.callbacks = static_cast<kj::HttpServerCallbacks&>(*this);
    server_ = kj::heap<kj::HttpServer>(
        context_.timer, *context_.names.table,
        [this](kj::AsyncIoStream& connection) -> kj::Own<kj::HttpService> {
          return kj::heap<ClosingService>(context_, kj::downcast<EndingStream>(connection),
                                          kj::heap<troupe::HttpService>(context_, connection));
        },
        settings);
  }

  Result<uint16_t> listen(const std::string& host, uint16_t port) {
    return accept_loop_.listen(host, port);
  }

  kj::Promise<void> drain(Duration grace) {
    accept_loop_.stop();
    draining_ = true;
    drained_ = server_->drain().fork();
    const kj::Duration limit = static_cast<int64_t>(grace.count()) * kj::NANOSECONDS;
    auto late = context_.timer.afterDelay(limit).then([this] {
      abort_exchanges();
      const kj::Duration flush = to_kj(context_.load.limits().abort_flush);
      return drained_.addBranch().exclusiveJoin(
          context_.timer.afterDelay(flush).then([this] { connections_ = nullptr; }));
    });
    return drained_.addBranch().exclusiveJoin(kj::mv(late));
  }

  [[nodiscard]] uint32_t open_connections() const { return open_connections_; }
  [[nodiscard]] uint32_t running_generations() const {
    return static_cast<uint32_t>(context_.exchanges.size());
  }

 private:
  kj::Own<kj::TaskSet> make_task_set() {
    return kj::heap<kj::TaskSet>(static_cast<kj::TaskSet::ErrorHandler&>(*this));
  }

  void take(kj::Own<kj::AsyncIoStream> connection) {
    std::optional<LoadTicket> ticket = context_.load.open_connection();
    if (!ticket) {
      auto& stream = *connection;
      connections_->add(
          write_in_time(context_, stream, too_many_connections()).attach(kj::mv(connection)));
      return;
    }
    ++open_connections_;
    auto ending = kj::heap<EndingStream>(kj::mv(connection));
    auto& stream = *ending;
    connections_->add(server_->listenHttpCleanDrain(stream)
                          .then([this, &stream](bool) { return end(stream); })
                          .attach(kj::mv(ending), kj::defer([this, ticket = std::move(*ticket)] {
                                    --open_connections_;
                                  })));
  }

  kj::Promise<void> end(EndingStream& connection) {
    // KJ gives up a connection whose header is too large without an answer.
    const bool flooded = connection.unanswered_bytes() > 0 && std::exchange(flooded_, false);
    if (!flooded) return linger(connection);
    context_.load.metrics().count_response(431);
    return write_in_time(context_, connection, header_too_large()).then([this, &connection] {
      return linger(connection);
    });
  }

  // Closing while the client still sends would reset the connection, and the client might never
  // read the answer that says why: so it is heard out for a moment.
  kj::Promise<void> linger(kj::AsyncIoStream& connection) {
    if (draining_) return kj::READY_NOW;
    connection.shutdownWrite();
    auto sink = kj::heap<kj::FixedArray<kj::byte, kLingerReadBytes>>();
    auto& buffer = *sink;
    return discard(connection, buffer, kLingerBytesMax)
        .attach(kj::mv(sink))
        .exclusiveJoin(context_.timer.afterDelay(kLingerTime));
  }

  kj::Promise<void> discard(kj::AsyncIoStream& connection, kj::ArrayPtr<kj::byte> buffer,
                            size_t most) {
    return connection.tryRead(buffer.begin(), 1, buffer.size())
        .then([this, &connection, buffer, most](size_t count) -> kj::Promise<void> {
          if (count == 0 || count >= most) return kj::READY_NOW;
          return discard(connection, buffer, most - count);
        });
  }

  void abort_exchanges() {
    // An aborted exchange leaves the set when its promise is destroyed, not before.
    for (Exchange* exchange : context_.exchanges) {
      exchange->abort({StatusCode::kUnavailable, "the server is shutting down; try again soon"});
    }
  }

  // A connection that ends with an exception: broken off, reset, or closed by a time limit.
  void taskFailed(kj::Exception&& e) override {
    VLOG(1) << "http connection ended: " << kj::str(e.getDescription()).cStr();
  }

  bool shouldClose() override { return std::exchange(context_.close_connection, false); }

  kj::Promise<void> handleClientProtocolError(kj::HttpHeaders::ProtocolError error,
                                              kj::HttpService::Response& response) override {
    if (error.statusCode == 408) context_.load.metrics().cut_slow_header.Increment();
    return send_protocol_error(error.statusCode, error.description.cStr(), response);
  }

  kj::Promise<void> handleApplicationError(
      kj::Exception e, kj::Maybe<kj::HttpService::Response&> response) override {
    if (e.getType() == kj::Exception::Type::DISCONNECTED) return kj::READY_NOW;
    // KJ's parser reports faults of the client's by exceptions of its own.
    const std::string_view text(e.getDescription().begin(), e.getDescription().size());
    const bool too_large = text.find("headers too large") != std::string_view::npos;
    const bool framing = std::string_view(e.getFile()).ends_with("compat/http.c++");
    KJ_IF_MAYBE (open, response) {
      if (too_large) return send_protocol_error(431, "the request's header is too large", *open);
      if (framing) return send_protocol_error(400, "the request's framing is malformed", *open);
      LOG(ERROR) << "an HTTP handler failed: " << kj::str(e).cStr();
      return send_protocol_error(500, "the server failed to handle the request; report it", *open);
    }
    flooded_ |= too_large;
    if (too_large || framing) {
      VLOG(1) << "http connection cut: " << kj::str(e.getDescription()).cStr();
    } else {
      LOG(ERROR) << "an HTTP response broke off: " << kj::str(e).cStr();
    }
    return kj::READY_NOW;
  }

  kj::Promise<void> handleNoResponse(kj::HttpService::Response& response) override {
    return send_protocol_error(500, "the server gave no answer; report it", response);
  }

  // KJ closes the connection behind these.
  kj::Promise<void> send_protocol_error(uint32_t status, const std::string& message,
                                        kj::HttpService::Response& response) {
    HttpRequestFacts facts;
    facts.request_id = "req-" + std::to_string(context_.load.next_request());
    facts.received = context_.clock.now();
    const bool ours = status == 500;
    const ApiError error = {status,
                            ours ? "server_error" : "invalid_request_error",
                            ours ? "internal_error" : "invalid_http",
                            message,
                            "",
                            0};
    return send_error(context_, facts, response, error);
  }

  HttpContext context_;
  uint32_t open_connections_ = 0;
  bool flooded_ = false;   // the connection that ends next has sent too large a header
  bool draining_ = false;  // nobody is waited for but those that are being answered
  kj::Own<kj::HttpServer> server_;
  kj::Own<kj::TaskSet> connections_;  // before the server in destruction: they run inside it
  AcceptLoop accept_loop_;
  kj::ForkedPromise<void> drained_ = nullptr;
};

HttpFrontend::HttpFrontend(kj::LowLevelAsyncIoProvider& io, kj::Timer& timer,
                           kj::UnixEventPort& event_port, Generator& generator,
                           const ModelCatalogue& models, const HealthSource& health,
                           MetricsSource& metrics, const Clock& clock, FrontendLoad& load,
                           HttpFrontendOptions options)
    : impl_(std::make_unique<Impl>(
          io, HttpContext{timer, event_port, generator, models, health, metrics, clock, load,
                          std::move(options), HttpHeaderNames()})) {}

HttpFrontend::~HttpFrontend() = default;

Result<uint16_t> HttpFrontend::listen(const std::string& host, uint16_t port) {
  return impl_->listen(host, port);
}

kj::Promise<void> HttpFrontend::drain(Duration grace) {
  return impl_->drain(grace);
}

uint32_t HttpFrontend::open_connections() const {
  return impl_->open_connections();
}

uint32_t HttpFrontend::running_generations() const {
  return impl_->running_generations();
}

}  // namespace troupe
