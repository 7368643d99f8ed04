#include "actors/health_monitor/health_monitor_core.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace troupe {
namespace {

// The router's text begins with one word for the state; what follows is for people.
NodeState state_of(const wire::WorkerStatus& status) {
  const std::string word = status.state.substr(0, status.state.find_first_of(": "));
  for (const NodeState state :
       {NodeState::kDraining, NodeState::kStalled, NodeState::kLost, NodeState::kLeft}) {
    if (word == to_string(state)) return state;
  }
  return status.accepting ? NodeState::kReady : NodeState::kUnable;
}

TransitionKind kind_of(NodeState from, NodeState to) {
  switch (to) {
    case NodeState::kUnable:
      return TransitionKind::kUnable;
    case NodeState::kDraining:
      return TransitionKind::kDraining;
    case NodeState::kStalled:
      return TransitionKind::kStalled;
    case NodeState::kLost:
      return TransitionKind::kLost;
    case NodeState::kLeft:
      return TransitionKind::kLeft;
    default:
      return from == NodeState::kUnheard ? TransitionKind::kJoined : TransitionKind::kReturned;
  }
}

// Of a router.
bool is_heard(NodeState state) {
  return state == NodeState::kReady || state == NodeState::kUnable;
}

bool is_gone(NodeState state) {
  return state == NodeState::kLost || state == NodeState::kLeft;
}

std::string after_first_word(const std::string& text) {
  const size_t end = text.find(": ");
  return end == std::string::npos ? "" : text.substr(end + 2);
}

}  // namespace

HealthMonitorCore::HealthMonitorCore(const Clock& clock, wire::Outbox& outbox,
                                     std::vector<MonitoredRouter> routers)
    : clock_(clock), outbox_(outbox), last_tick_(clock.now()) {
  TROUPE_ASSERT(!routers.empty() && routers.size() <= kObservedRoutersMax, routers.size());
  for (MonitoredRouter& names : routers) {
    Router& router = routers_.emplace_back();
    router.names = std::move(names);
    router.seen.endpoint = router.names.endpoint;
    router.seen.since = router.heard = last_tick_;
  }
}

void HealthMonitorCore::on_health(size_t index, wire::Health message) {
  TROUPE_ASSERT(index < routers_.size(), index, routers_.size());
  Router& router = routers_[index];
  router.heard = clock_.now();
  router.health = std::move(message);
  router.seen.requests = router.health.requests;
  const bool healthy = router.health.healthy;
  change(router.seen, healthy ? NodeState::kReady : NodeState::kUnable, router.health.reason);
  merge();
}

void HealthMonitorCore::on_peers(std::vector<PeerState> peers) {
  peers_ = std::move(peers);
  for (Router& router : routers_) {
    const bool cut = std::any_of(peers_.begin(), peers_.end(), [&](const PeerState& peer) {
      return !peer.connected && peer.node == node_of(router.names.endpoint);
    });
    if (cut && is_heard(router.seen.state)) lose(router, "the connection with it is broken");
  }
}

void HealthMonitorCore::lose(Router& router, const std::string& why) {
  change(router.seen, NodeState::kLost, why);
  router.seen.requests = 0;
}

void HealthMonitorCore::on_tick() {
  const TimePoint now = clock_.now();
  const Duration since_tick = now - std::exchange(last_tick_, now);
  for (Router& router : routers_) {
    if (since_tick > limits::kOwnPause) router.heard += since_tick;
    const bool silent = now - router.heard > limits::kHeartbeatTimeout;
    if (silent && is_heard(router.seen.state)) {
      lose(router, "not heard of for " + std::to_string(limits::kHeartbeatTimeout.count()) + " ms");
    }
    // A router that cannot be reached now is asked again with the next tick.
    [[maybe_unused]] const Status sent =
        outbox_.send(router.names.endpoint, wire::Observe{router.names.answer_at});
  }
  merge();
  forget_gone();
}

bool HealthMonitorCore::informed() const {
  return std::any_of(routers_.begin(), routers_.end(),
                     [](const Router& router) { return is_heard(router.seen.state); });
}

void HealthMonitorCore::merge() {
  if (!informed()) return;  // nobody tells; what was last known stands
  std::map<std::string, Sighting> sightings;
  for (const Router& router : routers_) {
    if (!is_heard(router.seen.state)) continue;
    for (const wire::WorkerStatus& status : router.health.workers) {
      Sighting& sighting = sightings[status.endpoint];
      const TimePoint heard = router.heard - status.heard;
      sighting.requests += status.requests;
      if (sighting.status == nullptr || heard > sighting.heard) {
        sighting.status = &status;
        sighting.heard = heard;
      }
    }
  }
  left_out_ = 0;
  for (const auto& [endpoint, sighting] : sightings) see(sighting);
  for (auto& [endpoint, worker] : workers_) {
    if (!sightings.contains(endpoint)) miss(worker);
  }
}

void HealthMonitorCore::see(const Sighting& sighting) {
  const std::string& endpoint = sighting.status->endpoint;
  const bool known = workers_.contains(endpoint);
  const NodeState state = state_of(*sighting.status);
  if (!known && is_gone(state)) return;  // never seen alive
  if (!known && workers_.size() >= kObservedWorkersMax) {
    ++left_out_;
    return;
  }
  ObservedWorker& worker = workers_[endpoint];
  const uint64_t before = std::exchange(worker.status, *sighting.status).incarnation;
  worker.status.requests = sighting.requests;
  worker.status.heard = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::max(Duration{0}, clock_.now() - sighting.heard));
  const std::string detail = after_first_word(worker.status.state);
  if (!known) {
    worker.state = NodeState::kUnheard;
    // Whatever it does first: it joined before.
    if (state != NodeState::kReady) change(worker, NodeState::kReady, "");
  } else if (before != worker.status.incarnation && worker.state == state) {
    ++worker.transitions;
    worker.since = clock_.now();
    note(NodeKind::kWorker, TransitionKind::kReturned, endpoint, "restarted");
    return;
  }
  change(worker, state, detail);
}

void HealthMonitorCore::miss(ObservedWorker& worker) {
  if (is_gone(worker.state)) return;
  const bool left = worker.state == NodeState::kDraining;
  worker.status.accepting = false;
  worker.status.requests = 0;
  worker.status.state = left ? "left" : "lost: no router knows it any more";
  change(worker, left ? NodeState::kLeft : NodeState::kLost, after_first_word(worker.status.state));
}

void HealthMonitorCore::change(ObservedRouter& router, NodeState state, const std::string& detail) {
  router.detail = detail;
  if (router.state == state) return;
  const bool first = router.state == NodeState::kUnheard;
  if (first && state == NodeState::kUnable) {
    change(router, NodeState::kReady, "");  // it joined, and then was found unable
    router.detail = detail;
  }
  note(NodeKind::kRouter, kind_of(router.state, state), router.endpoint, detail);
  router.state = state;
  router.since = clock_.now();
  ++router.transitions;
}

void HealthMonitorCore::change(ObservedWorker& worker, NodeState state, const std::string& detail) {
  if (worker.state == state) return;
  note(NodeKind::kWorker, kind_of(worker.state, state), worker.status.endpoint, detail);
  worker.state = state;
  worker.since = clock_.now();
  ++worker.transitions;
}

void HealthMonitorCore::note(NodeKind node_kind, TransitionKind kind, const std::string& endpoint,
                             const std::string& detail) {
  ++counts_[static_cast<size_t>(node_kind)][static_cast<size_t>(kind)];
  recent_.push_back({node_kind, kind, endpoint, detail, clock_.now(), clock_.unix_seconds()});
  ++untaken_;
  if (recent_.size() > kTransitionsKept) recent_.pop_front();
  untaken_ = std::min(untaken_, recent_.size());
}

void HealthMonitorCore::forget_gone() {
  const TimePoint now = clock_.now();
  for (auto worker = workers_.begin(); worker != workers_.end();) {
    const bool old = is_gone(worker->second.state) && now - worker->second.since > kGoneKept;
    if (old) forgotten_ += worker->second.transitions;
    worker = old ? workers_.erase(worker) : std::next(worker);
  }
}

MonitorView HealthMonitorCore::view() const {
  MonitorView view;
  view.now = clock_.now();
  for (const Router& router : routers_) {
    view.routers.push_back(router.seen);
    if (router.seen.state == NodeState::kReady) view.healthy = true;
    const std::string why =
        router.seen.detail.empty() ? to_string(router.seen.state) : router.seen.detail;
    if (!view.reason.empty()) view.reason += "; ";
    view.reason += "router " + router.seen.endpoint + ": " + why;
  }
  if (view.healthy) view.reason.clear();
  for (const auto& [endpoint, worker] : workers_) view.workers.push_back(worker);
  view.workers_left_out = left_out_;
  view.peers = peers_;
  view.transitions = counts_;
  view.recent.assign(recent_.begin(), recent_.end());
  return view;
}

std::vector<Transition> HealthMonitorCore::take_transitions() {
  const auto begin = recent_.end() - static_cast<std::ptrdiff_t>(std::exchange(untaken_, 0));
  return {begin, recent_.end()};
}

void HealthMonitorCore::check_invariants() const {
  uint64_t of_nodes = forgotten_, counted = 0;
  for (const Router& router : routers_) of_nodes += router.seen.transitions;
  for (const auto& [endpoint, worker] : workers_) {
    TROUPE_ASSERT(endpoint == worker.status.endpoint, endpoint, worker.status.endpoint);
    TROUPE_ASSERT(worker.state != NodeState::kUnheard && worker.transitions > 0, endpoint);
    of_nodes += worker.transitions;
  }
  for (const auto& kinds : counts_) {
    for (const uint64_t count : kinds) counted += count;
  }
  TROUPE_ASSERT(of_nodes == counted, of_nodes, counted);
  TROUPE_ASSERT(recent_.size() <= kTransitionsKept && untaken_ <= recent_.size(), recent_.size());
  TROUPE_ASSERT(workers_.size() <= kObservedWorkersMax, workers_.size());
}

}  // namespace troupe
