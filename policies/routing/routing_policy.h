#pragma once
// Chooses the workers of a request. A policy is a pure function: it sees values and returns a
// decision; it cannot send, wait, or see an actor.

#include <cstdint>
#include <optional>
#include <span>

#include "base/ids.h"

namespace troupe {

struct WorkerView {
  WorkerId id;
  bool accepting = false;      // alive, not stalled, not draining
  bool decodes = true;         // may be the plan's decode worker …
  bool prefills = false;       // … or its prefill worker
  bool imports = false;        // as a decode worker, may have prompts computed by others …
  bool exports = false;        // … and gives others what it holds
  uint32_t requests = 0;       // that this router routed there and that have not finished
  uint64_t prompt_tokens = 0;  // of those requests
  // Prompt tokens that it has still to compute, as it said last, and what was sent to it since.
  uint64_t queued_tokens = 0;
  double seconds_per_token = 0.0;  // of prompt, as it learned; 0: unknown
  // Of this request's prompt, at its beginning, believed to be in its prefix cache.
  uint32_t cached_tokens = 0;
};

struct RouteView {
  std::span<const WorkerView> workers;  // in the order of their ids
  uint32_t prompt_tokens = 0;           // of the request to place
};

// Indices into view.workers, of workers that accept.
struct RoutePlan {
  size_t decode = 0;
  // Who computes the prompt, or gives what it holds of it; none: it is computed where it is
  // decoded.
  std::optional<size_t> prefill;
  uint32_t prefill_tokens = 0;        // to have from there; 0: all but the prompt's last
  double prefill_wait_seconds = 0.0;  // predicted, until the prefill worker can begin
  bool operator==(const RoutePlan&) const = default;
};

class RoutingPolicy {
 public:
  virtual ~RoutingPolicy() = default;
  // Nothing when no worker that decodes accepts.
  [[nodiscard]] virtual std::optional<RoutePlan> decide(const RouteView& view) const = 0;
};

}  // namespace troupe
