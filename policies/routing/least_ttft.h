#pragma once
#include <vector>

#include "policies/routing/routing_policy.h"

namespace troupe {

// The plan with the smallest predicted time to the first token, in seconds, among decode workers
// that are not much busier than the least busy one:
//
//   computed where it is decoded   wait(d) + missing(d) * token(d) * (1 + max(1, requests(d)))
//   computed by a prefill worker   wait(p) + missing(p) * token(p) + moved(d) * move + exchange
//   fetched from a decode worker   exchange + moved * move + (missing after that) * token(d) +
//   wait(d)
//
// (those who decode there wait for each step that computes prompt; without the factor where no
// other worker could compute it), where wait = queued tokens * seconds per token, missing(w) =
// prompt tokens that w does not hold, and moved = those that d does not hold. Ties go to fewer
// requests, then to the lower id.
class LeastTtft final : public RoutingPolicy {
 public:
  struct Options {
    double move_seconds_per_token = 30e-6;  // of KV, over the network
    double exchange_seconds = 0.005;        // of an order, its answer, and a step that others share
    // What a worker computes a prompt token in while none has said so.
    double seconds_per_token_unknown = 0.002;
    // A decode worker may have this many requests more than the least busy one, or this share of
    // what that one has, before what it caches no longer counts.
    uint32_t requests_slack = 2;
    double requests_slack_share = 0.25;
  };

  LeastTtft() : LeastTtft(Options()) {}
  explicit LeastTtft(const Options& options) : options_(options) {}

  [[nodiscard]] std::optional<RoutePlan> decide(const RouteView& view) const override;

 private:
  // A plan and what it is predicted to take.
  struct Candidate {
    RoutePlan plan;
    double seconds = 0.0;
  };

  [[nodiscard]] std::vector<WorkerView> with_speeds(std::span<const WorkerView> workers) const;
  [[nodiscard]] Candidate best_for(const RouteView& view, size_t decode) const;
  [[nodiscard]] Candidate from(const RouteView& view, size_t decode, size_t source) const;

  const Options options_;
};

}  // namespace troupe
