#pragma once
// The Cap'n Proto RPC server. schema/serving.capnp and docs/rpc.md say what clients may rely on.

#include <kj/async-io.h>
#include <kj/timer.h>

#include <cstdint>
#include <memory>
#include <string>

#include "actors/gateway/api_keys.h"
#include "actors/gateway/frontend_load.h"
#include "actors/gateway/generation.h"
#include "actors/gateway/health_source.h"
#include "actors/gateway/openai/model_catalogue.h"
#include "base/clock.h"
#include "troupe/status.h"

namespace troupe {

// Serves one port. Everything runs on the loop thread; construct and destroy it there. Destroying
// it cuts all connections and cancels what they asked for. SIGPIPE must be ignored in the process.
class RpcFrontend final {
 public:
  // All references outlive this object. `version` is told to clients. `keys`: clients must give one
  // of these first; null, or none in it: they need none.
  RpcFrontend(kj::LowLevelAsyncIoProvider& io, kj::Timer& timer, Generator& generator,
              const ModelCatalogue& models, const HealthSource& health, const Clock& clock,
              FrontendLoad& load, std::string version, const ApiKeys* keys = nullptr);
  ~RpcFrontend();
  RpcFrontend(const RpcFrontend&) = delete;
  RpcFrontend& operator=(const RpcFrontend&) = delete;

  // As HttpFrontend::listen().
  [[nodiscard]] Result<uint16_t> listen(const std::string& host, uint16_t port);

  // Stops accepting and refuses new requests (OVERLOADED), lets running ones finish for at most
  // `grace`, then ends the rest with an error. Resolves when no connection is left. Call once.
  [[nodiscard]] kj::Promise<void> drain(Duration grace);

  [[nodiscard]] uint32_t open_connections() const;
  [[nodiscard]] uint32_t running_generations() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe
