#pragma once
#include "policies/routing/routing_policy.h"

namespace troupe {

// Decodes at the accepting worker with the fewest requests; among equals the one with the fewest
// prompt tokens; among equals the lowest id. Has the prompt computed by the accepting prefill
// worker that is predicted to be through with what it has soonest, if there is any and the decode
// worker imports.
class LeastLoaded final : public RoutingPolicy {
 public:
  [[nodiscard]] std::optional<RoutePlan> decide(const RouteView& view) const override;
};

}  // namespace troupe
