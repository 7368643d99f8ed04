#include "actors/router/worker_table.h"

#include <utility>

#include "base/assert.h"
#include "base/limits.h"
#include "troupe/transport.h"

namespace troupe {
namespace {

// Of what is told of workers that cannot serve; further ones are left out.
constexpr size_t kReasonBytesMax = 1024;
constexpr const char* kHasLeft = "its worker has left";

std::string state_of(const Worker& worker) {
  if (worker.lost == kHasLeft) return "left";
  if (!worker.lost.empty()) return "lost: " + worker.lost;
  if (worker.stalled) return "stalled";
  if (worker.draining) return "draining";
  return "ready";
}

}  // namespace

// The same request has the same tokens at every worker of its model only while all of them store KV
// alike; those that are lost do not count.
Status WorkerTable::check_kv_type(const wire::Heartbeat& heartbeat) const {
  for (const auto& [id, worker] : workers_) {
    const bool counts = id != heartbeat.worker && worker.lost.empty();
    if (!counts || worker.model != heartbeat.model || worker.kv_type == heartbeat.kv_type) continue;
    return invalid_argument("worker " + heartbeat.endpoint + " stores KV of " +
                            heartbeat.model_name + " in " +
                            std::string(to_string(heartbeat.kv_type)) + ", " + worker.endpoint +
                            " in " + std::string(to_string(worker.kv_type)) +
                            ": start all workers of a model with the same --kv-cache-dtype");
  }
  return ok_status();
}

Status WorkerTable::check(const wire::Heartbeat& heartbeat) const {
  TROUPE_RETURN_IF_ERROR(check_kv_type(heartbeat));
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
  if (known->second.incarnation == heartbeat.incarnation &&
      known->second.model != heartbeat.model) {
    return invalid_argument("worker " + heartbeat.endpoint + " had the model " +
                            known->second.model + " and says now that it has " + heartbeat.model +
                            ": restart it");
  }
  return ok_status();
}

Result<WorkerTable::Change> WorkerTable::take(const wire::Heartbeat& heartbeat, TimePoint now) {
  TROUPE_RETURN_IF_ERROR(check(heartbeat));
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
  worker.model = heartbeat.model;
  worker.model_name = heartbeat.model_name;
  worker.role = heartbeat.role;
  worker.kv_type = heartbeat.kv_type;
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

std::vector<WorkerView> WorkerTable::views(std::string_view model) const {
  std::vector<WorkerView> views;
  views.reserve(workers_.size());
  for (const auto& [id, worker] : workers_) {
    if (worker.model != model) continue;
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
                        worker.incarnation, worker.requests, heard, worker.load, worker.model,
                        worker.model_name});
  }
  return statuses;
}

std::optional<std::string> WorkerTable::only_model() const {
  std::optional<std::string> only;
  for (const auto& [id, worker] : workers_) {
    if (only && *only != worker.model) return std::nullopt;
    only = worker.model;
  }
  return only;
}

template <class Counts>
std::string WorkerTable::unhealthy_where(Counts&& counts) const {
  std::string reasons;
  for (const auto& [id, worker] : workers_) {
    if (worker.role == wire::Role::kPrefill || !counts(worker)) continue;
    if (worker.accepting()) return "";
    if (reasons.size() > kReasonBytesMax) continue;
    if (!reasons.empty()) reasons += "; ";
    reasons += "worker " + worker.endpoint + " is " + state_of(worker);
  }
  return reasons.empty() ? "no worker that decodes has joined yet" : reasons;
}

std::string WorkerTable::unhealthy() const {
  return unhealthy_where([](const Worker&) { return true; });
}

std::string WorkerTable::unhealthy(std::string_view model) const {
  return unhealthy_where([model](const Worker& worker) { return worker.model == model; });
}

}  // namespace troupe
