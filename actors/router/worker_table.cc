#include "actors/router/worker_table.h"

#include <utility>

#include "base/assert.h"
#include "base/limits.h"
#include "troupe/transport.h"

namespace troupe {
namespace {

constexpr const char* kHasLeft = "its worker has left";

std::string state_of(const Worker& worker) {
  if (worker.lost == kHasLeft) return "left";
  if (!worker.lost.empty()) return "lost: " + worker.lost;
  if (worker.stalled) return "stalled";
  if (worker.draining) return "draining";
  return "ready";
}

}  // namespace

Status WorkerTable::check(const wire::Heartbeat& heartbeat) const {
  if (!model_.empty() && heartbeat.model != model_) {
    return invalid_argument("the model of worker " + heartbeat.endpoint + " is " + heartbeat.model +
                            ", this cluster's is " + model_ +
                            ": start the worker with the cluster's model file");
  }
  const auto known = workers_.find(heartbeat.worker);
  if (known == workers_.end()) {
    if (workers_.size() < limits::kWorkersMax) return ok_status();
    return {StatusCode::kResourceExhausted,
            "the router knows " + std::to_string(limits::kWorkersMax) +
                " workers already, which is the limit; start another cluster"};
  }
  if (known->second.endpoint != heartbeat.endpoint && known->second.lost.empty()) {
    return invalid_argument("worker " + std::to_string(heartbeat.worker.value) + " is " +
                            known->second.endpoint + " already, " + heartbeat.endpoint +
                            " says the same of itself: listen at another address");
  }
  return ok_status();
}

Result<WorkerTable::Change> WorkerTable::take(const wire::Heartbeat& heartbeat, TimePoint now) {
  TROUPE_RETURN_IF_ERROR(check(heartbeat));
  if (model_.empty()) model_ = heartbeat.model;
  Worker& worker = workers_[heartbeat.worker];
  Change change;
  // Another life of the worker knows nothing of what was routed to the former one.
  if (worker.incarnation != 0 && worker.incarnation != heartbeat.incarnation) {
    change.lost = "its worker was restarted";
  }
  if (heartbeat.stalled && !worker.stalled) {
    change.lost = "its worker's device has made no progress for " +
                  std::to_string(heartbeat.step_age.count()) + " ms";
  }
  worker.endpoint = heartbeat.endpoint;
  worker.role = heartbeat.role;
  worker.incarnation = heartbeat.incarnation;
  worker.last_heartbeat = now;
  worker.load = heartbeat.load;
  worker.stalled = heartbeat.stalled;
  worker.draining = heartbeat.draining;
  worker.sent_tokens = 0;
  worker.lost.clear();
  if (heartbeat.left) worker.lost = change.lost = kHasLeft;
  return change;
}

Worker* WorkerTable::find(WorkerId id) {
  const auto found = workers_.find(id);
  return found == workers_.end() ? nullptr : &found->second;
}

std::vector<WorkerId> WorkerTable::lose_node(std::string_view node, const std::string& why,
                                             TimePoint now) {
  std::vector<WorkerId> lost;
  for (auto& [id, worker] : workers_) {
    if (!worker.lost.empty() || node_of(worker.endpoint) != node) continue;
    worker.lost = "its worker's node cannot be reached (" + why + ")";
    worker.last_heartbeat = now;
    lost.push_back(id);
  }
  return lost;
}

std::vector<WorkerId> WorkerTable::lose_silent(TimePoint now) {
  std::vector<WorkerId> lost;
  for (auto& [id, worker] : workers_) {
    if (!worker.lost.empty() || now - worker.last_heartbeat <= limits::kHeartbeatTimeout) continue;
    worker.lost = "its worker has not been heard of for " +
                  std::to_string(limits::kHeartbeatTimeout.count()) + " ms";
    lost.push_back(id);
  }
  return lost;
}

void WorkerTable::excuse(Duration pause) {
  for (auto& [id, worker] : workers_) worker.last_heartbeat += pause;
}

void WorkerTable::forget_old(TimePoint now) {
  std::erase_if(workers_, [now](const auto& entry) {
    const Worker& worker = entry.second;
    return !worker.lost.empty() && worker.requests == 0 &&
           now - worker.last_heartbeat > limits::kLostWorkerKept;
  });
}

std::vector<WorkerView> WorkerTable::views() const {
  std::vector<WorkerView> views;
  views.reserve(workers_.size());
  for (const auto& [id, worker] : workers_) {
    WorkerView& view = views.emplace_back();
    view.id = id;
    view.accepting = worker.accepting();
    view.decodes = worker.role != wire::Role::kPrefill;
    view.prefills = worker.role == wire::Role::kPrefill;
    view.imports = view.exports = worker.role == wire::Role::kDecode;
    view.requests = worker.requests;
    view.prompt_tokens = worker.prompt_tokens;
    view.queued_tokens = worker.load.queued_tokens + worker.sent_tokens;
    view.seconds_per_token = worker.load.seconds_per_token;
  }
  return views;
}

std::vector<wire::WorkerStatus> WorkerTable::statuses(TimePoint now) const {
  std::vector<wire::WorkerStatus> statuses;
  statuses.reserve(workers_.size());
  for (const auto& [id, worker] : workers_) {
    const auto heard =
        std::chrono::duration_cast<std::chrono::milliseconds>(now - worker.last_heartbeat);
    statuses.push_back({id, worker.endpoint, worker.role, worker.accepting(), state_of(worker),
                        worker.incarnation, worker.requests, heard, worker.load});
  }
  return statuses;
}

std::string WorkerTable::unhealthy() const {
  std::string reasons;
  for (const auto& [id, worker] : workers_) {
    if (worker.role == wire::Role::kPrefill) continue;
    if (worker.accepting()) return "";
    if (!reasons.empty()) reasons += "; ";
    reasons += "worker " + worker.endpoint + " is " + state_of(worker);
  }
  return reasons.empty() ? "no worker that decodes has joined yet" : reasons;
}

}  // namespace troupe
