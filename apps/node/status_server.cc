#include "apps/node/status_server.h"

#include <glog/logging.h>

#include "actors/gateway/http/listen_socket.h"
#include "actors/gateway/text/escape.h"
#include "base/assert.h"

namespace troupe {
namespace {

// Scrapers and probes are few; what comes beyond waits for nothing and is closed.
constexpr uint32_t kConnectionsMost = 64;
constexpr kj::Duration kHeaderTimeout = 5 * kj::SECONDS;
constexpr kj::Duration kKeepAlive = 60 * kj::SECONDS;
constexpr kj::Duration kAcceptRetryDelay = 100 * kj::MILLISECONDS;

}  // namespace

StatusServer::StatusServer(kj::LowLevelAsyncIoProvider& io, kj::Timer& timer,
                           const ServingMetrics& metrics, const HealthSource& health)
    : io_(io),
      timer_(timer),
      metrics_(metrics),
      health_(health),
      tasks_(static_cast<kj::TaskSet::ErrorHandler&>(*this)) {
  kj::HttpServerSettings settings;
  settings.headerTimeout = kHeaderTimeout;
  settings.pipelineTimeout = kKeepAlive;
  server_ =
      kj::heap<kj::HttpServer>(timer_, headers_, static_cast<kj::HttpService&>(*this), settings);
}

Result<uint16_t> StatusServer::listen(const std::string& host, uint16_t port) {
  TROUPE_ASSERT(listener_.get() == nullptr, host, port);
  TROUPE_ASSIGN_OR_RETURN(ListenSocket socket, open_listen_socket(host, port));
  listener_ =
      io_.wrapListenSocketFd(kj::mv(socket.fd), kj::LowLevelAsyncIoProvider::ALREADY_CLOEXEC |
                                                    kj::LowLevelAsyncIoProvider::ALREADY_NONBLOCK);
  tasks_.add(accept_loop());
  return socket.port;
}

kj::Promise<void> StatusServer::accept_loop() {
  return listener_->accept()
      .then(
          [this](kj::Own<kj::AsyncIoStream> connection) -> kj::Promise<void> {
            if (connections_ >= kConnectionsMost) return kj::READY_NOW;
            ++connections_;
            tasks_.add(server_->listenHttp(kj::mv(connection)).attach(kj::defer([this] {
              --connections_;
            })));
            return kj::READY_NOW;
          },
          [this](kj::Exception&&) -> kj::Promise<void> {  // such as too many open files
            return timer_.afterDelay(kAcceptRetryDelay);
          })
      .then([this] { return accept_loop(); });
}

kj::Promise<void> StatusServer::request(kj::HttpMethod method, kj::StringPtr url,
                                        const kj::HttpHeaders& /*headers*/,
                                        kj::AsyncInputStream& /*body*/, Response& response) {
  if (method != kj::HttpMethod::GET) {
    return response.sendError(405, "Method Not Allowed", headers_);
  }
  std::string body;
  uint32_t status = 200;
  const char* type = "application/json";
  if (url == "/metrics") {
    body = metrics_.serialize();
    type = "text/plain; version=0.0.4; charset=utf-8";
  } else if (url == "/health") {
    const Status health = health_.health();
    status = health.ok() ? 200 : 503;
    body = "{\"status\":";
    append_json_string(body, health.ok() ? "ok" : health.message());
    body += "}";
  } else {
    return response.sendError(404, "Not Found", headers_);
  }
  kj::HttpHeaders headers(headers_);
  headers.set(kj::HttpHeaderId::CONTENT_TYPE, type);
  auto owned = kj::heap<std::string>(std::move(body));
  auto stream =
      response.send(status, status == 200 ? "OK" : "Service Unavailable", headers, owned->size());
  auto written = stream->write(owned->data(), owned->size());
  return written.attach(kj::mv(stream), kj::mv(owned));
}

void StatusServer::taskFailed(kj::Exception&& exception) {
  VLOG(1) << "status port: " << exception.getDescription().cStr();
}

}  // namespace troupe
