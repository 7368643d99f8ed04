#include "policies/routing/least_loaded.h"

#include <tuple>

namespace troupe {
namespace {

// Predicted seconds until the worker has computed the prompts that it has. One of which nothing is
// known yet has nothing to do, or is taken to be as fast as a small model on a processor.
double queue_seconds(const WorkerView& worker) {
  constexpr double kSecondsPerTokenUnknown = 0.002;
  const double per_token =
      worker.seconds_per_token > 0.0 ? worker.seconds_per_token : kSecondsPerTokenUnknown;
  return static_cast<double>(worker.queued_tokens) * per_token;
}

}  // namespace

std::optional<RoutePlan> LeastLoaded::decide(const RouteView& view) const {
  const auto load = [](const WorkerView& worker) {
    return std::tuple(worker.requests, worker.prompt_tokens, worker.id);
  };
  const auto queue = [](const WorkerView& worker) {
    return std::tuple(queue_seconds(worker), worker.id);
  };
  std::optional<size_t> decode, prefill;
  for (size_t i = 0; i < view.workers.size(); ++i) {
    const WorkerView& worker = view.workers[i];
    if (!worker.accepting) continue;
    if (worker.decodes && (!decode || load(worker) < load(view.workers[*decode]))) decode = i;
    if (worker.prefills && (!prefill || queue(worker) < queue(view.workers[*prefill]))) prefill = i;
  }
  if (!decode) return std::nullopt;
  RoutePlan plan{.decode = *decode};
  if (prefill && view.workers[*decode].imports) {
    plan.prefill = prefill;
    plan.prefill_wait_seconds = queue_seconds(view.workers[*prefill]);
  }
  return plan;
}

}  // namespace troupe
