#pragma once
// Whether a gateway can serve, as its front ends ask it.

#include <string_view>

#include "troupe/status.h"

namespace troupe {

// Called on the loop thread for each probe of a client; answers at once.
class HealthSource {
 public:
  virtual ~HealthSource() = default;
  // Ok: requests would be served. Anything else: not now, for the reason that the message tells,
  // e.g. while loading or when the engine is stuck.
  [[nodiscard]] virtual Status health() const = 0;
  // The same for requests for one model, named by its digest.
  [[nodiscard]] virtual Status health_of(std::string_view /*digest*/) const { return health(); }
};

}  // namespace troupe
