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
  bool imports = false;        // as a decode worker, may have prompts computed by a prefill worker
  uint32_t requests = 0;       // that this router routed there and that have not finished
  uint64_t prompt_tokens = 0;  // of those requests
  // Prompt tokens that it has still to compute, as it said last, and what was sent to it since.
  uint64_t queued_tokens = 0;
  double seconds_per_token = 0.0;  // of prompt, as it learned; 0: unknown
};

struct RouteView {
  std::span<const WorkerView> workers;  // in the order of their ids
  uint32_t prompt_tokens = 0;           // of the request to place
};

// Indices into view.workers, of workers that accept.
struct RoutePlan {
  size_t decode = 0;
  std::optional<size_t> prefill;      // none: the prompt is computed where it is decoded
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
