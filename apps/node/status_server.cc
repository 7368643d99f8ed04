#include "apps/node/status_server.h"

#include <glog/logging.h>

#include <utility>

#include "actors/gateway/http/listen_socket.h"
#include "actors/gateway/text/escape.h"
#include "base/assert.h"
#include "engine/tokenizer/detokenizer.h"

namespace troupe {
namespace {

// Scrapers and probes are few; what comes beyond waits for nothing and is closed.
constexpr uint32_t kConnectionsMost = 64;
constexpr kj::Duration kHeaderTimeout = 5 * kj::SECONDS;
constexpr kj::Duration kKeepAlive = 60 * kj::SECONDS;
// For a client to take an answer; one that reads nothing for so long is cut.
constexpr kj::Duration kWriteTimeout = 10 * kj::SECONDS;
constexpr kj::Duration kAcceptRetryDelay = 100 * kj::MILLISECONDS;

}  // namespace

StatusServer::StatusServer(kj::LowLevelAsyncIoProvider& io, kj::Timer& timer, StatusPages pages)
    : io_(io),
      timer_(timer),
      pages_(std::move(pages)),
      tasks_(static_cast<kj::TaskSet::ErrorHandler&>(*this)) {
  kj::HttpServerSettings settings;
  settings.headerTimeout = kHeaderTimeout;
  settings.pipelineTimeout = kKeepAlive;
  server_ =
      kj::heap<kj::HttpServer>(timer_, headers_, static_cast<kj::HttpService&>(*this), settings);
}

std::optional<StatusServer::Page> StatusServer::page(std::string_view path) const {
  if (path == "/metrics" && pages_.metrics) {
    return Page{200, "text/plain; version=0.0.4; charset=utf-8", pages_.metrics()};
  }
  if (path == "/cluster" && pages_.cluster) return Page{200, "application/json", pages_.cluster()};
  if (path != "/health" || !pages_.health) return std::nullopt;
  const Status health = pages_.health();
  Page page;
  page.status = health.ok() ? 200 : 503;
  page.body = "{\"status\":";
  append_json_string(page.body, health.ok() ? "ok" : to_valid_utf8(health.message()));
  page.body += "}";
  return page;
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
  if (method != kj::HttpMethod::GET && method != kj::HttpMethod::HEAD) {
    return response.sendError(405, "Method Not Allowed", headers_);
  }
  const std::string_view target(url.cStr(), url.size());
  std::optional<Page> found = page(target.substr(0, target.find('?')));
  if (!found) return response.sendError(404, "Not Found", headers_);
  kj::HttpHeaders headers(headers_);
  headers.set(kj::HttpHeaderId::CONTENT_TYPE, found->type);
  auto body = kj::heap<std::string>(std::move(found->body));
  auto stream = response.send(found->status, found->status == 200 ? "OK" : "Service Unavailable",
                              headers, body->size());
  if (method == kj::HttpMethod::HEAD) return kj::READY_NOW;
  auto written = timer_.timeoutAfter(kWriteTimeout, stream->write(body->data(), body->size()));
  return written.attach(kj::mv(stream), kj::mv(body));
}

void StatusServer::taskFailed(kj::Exception&& exception) {
  VLOG(1) << "status port: " << exception.getDescription().cStr();
}

}  // namespace troupe
