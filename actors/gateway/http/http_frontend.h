#pragma once
// The OpenAI-compatible HTTP server. docs/http-api.md says what clients may rely on.

#include <kj/async-io.h>
#include <kj/async-unix.h>
#include <kj/timer.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/gateway/api_keys.h"
#include "actors/gateway/frontend_load.h"
#include "actors/gateway/generation.h"
#include "actors/gateway/health_source.h"
#include "actors/gateway/openai/model_catalogue.h"
#include "base/clock.h"
#include "troupe/status.h"

namespace troupe {

// Called on the loop thread for each GET /metrics; answers at once.
class MetricsSource {
 public:
  virtual ~MetricsSource() = default;
  // Prometheus' text format, version 0.0.4.
  [[nodiscard]] virtual std::string render_metrics() = 0;
};

struct HttpFrontendOptions {
  std::string version;  // for GET /version
  // For GET /cluster: one JSON object; called on the loop thread, answers at once. Empty: there is
  // no such page.
  std::function<std::string()> cluster;
  // Keys of which a request must have one; outlives the front end. Null, or none in it: anybody may
  // ask.
  const ApiKeys* keys = nullptr;
  std::vector<std::string> open_paths;    // that need no key nevertheless
  std::vector<std::string> cors_origins;  // whose pages may ask; "*": all
};

// Serves one port. Everything runs on the loop thread; construct and destroy it there. Destroying
// it cuts all connections and cancels what they asked for. SIGPIPE must be ignored in the process.
class HttpFrontend final {
 public:
  // All references outlive this object. Models may be added at any time, on the loop thread; while
  // there are none, generating requests are answered 503.
  HttpFrontend(kj::LowLevelAsyncIoProvider& io, kj::Timer& timer, kj::UnixEventPort& event_port,
               Generator& generator, const ModelCatalogue& models, const HealthSource& health,
               MetricsSource& metrics, const Clock& clock, FrontendLoad& load,
               HttpFrontendOptions options);
  ~HttpFrontend();
  HttpFrontend(const HttpFrontend&) = delete;
  HttpFrontend& operator=(const HttpFrontend&) = delete;

  // Binds and starts to accept. `host` is a name or an address; port 0 picks a free one. Returns
  // the bound port. kUnavailable: the port is taken; kInvalidArgument: the host is not one of this
  // machine; both say what to do.
  [[nodiscard]] Result<uint16_t> listen(const std::string& host, uint16_t port);

  // Stops accepting, lets running requests finish for at most `grace`, then ends the rest with an
  // error event. Resolves when no connection is left. Call once.
  [[nodiscard]] kj::Promise<void> drain(Duration grace);

  [[nodiscard]] uint32_t open_connections() const;
  [[nodiscard]] uint32_t running_generations() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe
