#pragma once
// The small HTTP port of a program that is no gateway: pages to look at, such as GET /metrics,
// GET /health and GET /cluster.

#include <kj/async-io.h>
#include <kj/compat/http.h>
#include <kj/timer.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "troupe/status.h"

namespace troupe {

// What the port shows; called on the loop thread, answer at once. An empty function: no such page.
struct StatusPages {
  std::function<std::string()> metrics;  // Prometheus' text format
  std::function<Status()> health;        // ok: 200, else 503 with the message
  std::function<std::string()> cluster;  // JSON
};

// Answers GET and HEAD. Everything runs on the loop thread. Destroying it cuts all connections.
class StatusServer final : private kj::HttpService, private kj::TaskSet::ErrorHandler {
 public:
  // All references, and what the pages refer to, outlive this object.
  StatusServer(kj::LowLevelAsyncIoProvider& io, kj::Timer& timer, StatusPages pages);

  // As HttpFrontend::listen().
  [[nodiscard]] Result<uint16_t> listen(const std::string& host, uint16_t port);

 private:
  struct Page {
    uint32_t status = 200;
    const char* type = "application/json";
    std::string body;
  };

  kj::Promise<void> request(kj::HttpMethod method, kj::StringPtr url,
                            const kj::HttpHeaders& headers, kj::AsyncInputStream& body,
                            Response& response) override;
  [[nodiscard]] std::optional<Page> page(std::string_view path) const;
  kj::Promise<void> accept_loop();
  void taskFailed(kj::Exception&& exception) override;

  kj::LowLevelAsyncIoProvider& io_;
  kj::Timer& timer_;
  const StatusPages pages_;
  kj::HttpHeaderTable headers_;
  uint32_t connections_ = 0;
  kj::Own<kj::HttpServer> server_;
  kj::Own<kj::ConnectionReceiver> listener_;
  kj::TaskSet tasks_;
};

}  // namespace troupe
