#pragma once
// The small HTTP port of a program that is no gateway: GET /metrics and GET /health.

#include <kj/async-io.h>
#include <kj/compat/http.h>
#include <kj/timer.h>

#include <cstdint>
#include <string>

#include "actors/gateway/health_source.h"
#include "base/metrics/serving_metrics.h"
#include "troupe/status.h"

namespace troupe {

// Everything runs on the loop thread. Destroying it cuts all connections.
class StatusServer final : private kj::HttpService, private kj::TaskSet::ErrorHandler {
 public:
  // All references outlive this object.
  StatusServer(kj::LowLevelAsyncIoProvider& io, kj::Timer& timer, const ServingMetrics& metrics,
               const HealthSource& health);

  // As HttpFrontend::listen().
  [[nodiscard]] Result<uint16_t> listen(const std::string& host, uint16_t port);

 private:
  kj::Promise<void> request(kj::HttpMethod method, kj::StringPtr url,
                            const kj::HttpHeaders& headers, kj::AsyncInputStream& body,
                            Response& response) override;
  kj::Promise<void> accept_loop();
  void taskFailed(kj::Exception&& exception) override;

  kj::LowLevelAsyncIoProvider& io_;
  kj::Timer& timer_;
  const ServingMetrics& metrics_;
  const HealthSource& health_;
  kj::HttpHeaderTable headers_;
  uint32_t connections_ = 0;
  kj::Own<kj::HttpServer> server_;
  kj::Own<kj::ConnectionReceiver> listener_;
  kj::TaskSet tasks_;
};

}  // namespace troupe
