#pragma once
#include "policies/routing/routing_policy.h"

namespace troupe {

// The accepting worker with the fewest requests; among equals the one with the fewest prompt
// tokens; among equals the lowest id.
class LeastLoaded final : public RoutingPolicy {
 public:
  [[nodiscard]] std::optional<size_t> decide(const RouteView& view) const override;
};

}  // namespace troupe
