#include "actors/health_monitor/monitor_view.h"

#include <algorithm>

#include "base/assert.h"

namespace troupe {

const char* to_string(NodeState state) {
  static constexpr std::array<const char*, kNodeStates> kNames = {
      "unheard", "ready", "unable", "draining", "stalled", "lost", "left"};
  TROUPE_ASSERT(static_cast<size_t>(state) < kNames.size());
  return kNames[static_cast<size_t>(state)];
}

const char* to_string(TransitionKind kind) {
  static constexpr std::array<const char*, kTransitionKinds> kNames = {
      "joined", "unable", "draining", "stalled", "lost", "left", "returned"};
  TROUPE_ASSERT(static_cast<size_t>(kind) < kNames.size());
  return kNames[static_cast<size_t>(kind)];
}

bool MonitorView::informed() const {
  return std::any_of(routers.begin(), routers.end(), [](const ObservedRouter& router) {
    return router.state == NodeState::kReady || router.state == NodeState::kUnable;
  });
}

}  // namespace troupe
