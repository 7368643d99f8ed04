#pragma once
// What a health monitor knows, as values: made by its core, rendered by monitor_page.h.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "actors/wire/messages.h"
#include "base/clock.h"
#include "troupe/transport.h"

namespace troupe {

enum class NodeKind : uint8_t { kRouter, kWorker };

enum class NodeState : uint8_t {
  kUnheard,   // a router that has not answered yet
  kReady,     // takes requests
  kUnable,    // takes none now; a router: it has no worker for them
  kDraining,  // finishes what it has
  kStalled,   // its device makes no progress
  kLost,      // silent
  kLeft,      // ended as it should
};
inline constexpr size_t kNodeStates = 7;

// "ready", "unable", …
[[nodiscard]] const char* to_string(NodeState state);

// What a transition is called. `joined` is the first sight of a node, `returned` is ready again
// after anything else, or ready with another incarnation.
enum class TransitionKind : uint8_t {
  kJoined,
  kUnable,
  kDraining,
  kStalled,
  kLost,
  kLeft,
  kReturned,
};
inline constexpr size_t kTransitionKinds = 7;
[[nodiscard]] const char* to_string(TransitionKind kind);

struct Transition {
  NodeKind node_kind = NodeKind::kWorker;
  TransitionKind kind = TransitionKind::kJoined;
  std::string endpoint;
  std::string detail;  // why, for people; may be empty
  TimePoint at{};
  int64_t unix_seconds = 0;
  bool operator==(const Transition&) const = default;
};

struct ObservedRouter {
  std::string endpoint;
  NodeState state = NodeState::kUnheard;
  std::string detail;
  TimePoint since{};         // of the state
  uint64_t transitions = 0;  // of this node
  uint32_t requests = 0;     // that it has in flight
  bool operator==(const ObservedRouter&) const = default;
};

struct ObservedWorker {
  wire::WorkerStatus status;  // as the router that heard it last tells; `requests` of all routers
  NodeState state = NodeState::kReady;
  TimePoint since{};
  uint64_t transitions = 0;
  bool operator==(const ObservedWorker&) const = default;
};

struct MonitorView {
  TimePoint now{};
  // Some router is heard and can serve; else `reason` says what is missing.
  bool healthy = false;
  std::string reason;
  std::vector<ObservedRouter> routers;  // in the order of the options
  std::vector<ObservedWorker> workers;  // by endpoint
  uint32_t workers_left_out = 0;        // beyond kObservedWorkersMax
  std::vector<PeerState> peers;         // of the monitor's own node
  std::array<std::array<uint64_t, kTransitionKinds>, 2> transitions{};  // by NodeKind
  std::vector<Transition> recent;                                       // oldest first

  // Some router is heard: what stands here of workers is news and no memory.
  [[nodiscard]] bool informed() const;
};

// A worker that can compute now.
[[nodiscard]] inline bool is_up(NodeState state) {
  return state == NodeState::kReady || state == NodeState::kDraining || state == NodeState::kUnable;
}

}  // namespace troupe
