#pragma once
// Chooses the worker of a request. A policy is a pure function: it sees values and returns a
// decision; it cannot send, wait, or see an actor.

#include <cstdint>
#include <optional>
#include <span>

#include "base/ids.h"

namespace troupe {

struct WorkerView {
  WorkerId id;
  bool accepting = false;      // alive, not stalled, not draining
  uint32_t requests = 0;       // routed there and not finished
  uint64_t prompt_tokens = 0;  // of those requests
};

struct RouteView {
  std::span<const WorkerView> workers;  // in the order of their ids
  uint32_t prompt_tokens = 0;           // of the request to place
};

class RoutingPolicy {
 public:
  virtual ~RoutingPolicy() = default;
  // Index into view.workers of one that accepts, or nothing when none does.
  [[nodiscard]] virtual std::optional<size_t> decide(const RouteView& view) const = 0;
};

}  // namespace troupe
