#include "policies/routing/least_loaded.h"

#include <tuple>

namespace troupe {

std::optional<size_t> LeastLoaded::decide(const RouteView& view) const {
  const auto load = [](const WorkerView& worker) {
    return std::tuple(worker.requests, worker.prompt_tokens, worker.id);
  };
  std::optional<size_t> best;
  for (size_t i = 0; i < view.workers.size(); ++i) {
    if (!view.workers[i].accepting) continue;
    if (!best || load(view.workers[i]) < load(view.workers[*best])) best = i;
  }
  return best;
}

}  // namespace troupe
