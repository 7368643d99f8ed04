#include "actors/router/router_core.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace troupe {
namespace {

constexpr double kDurationWeight = 0.05;  // of the newest request in the mean
constexpr std::chrono::milliseconds kRetryAfterMin{1000};
constexpr std::chrono::milliseconds kRetryAfterMax{60000};

}  // namespace

RouterCore::RouterCore(const Clock& clock, wire::Outbox& outbox, const RoutingPolicy& policy,
                       RouterOptions options)
    : clock_(clock),
      outbox_(outbox),
      policy_(policy),
      options_(std::move(options)),
      last_tick_(clock.now()) {
  TROUPE_ASSERT(!options_.workers.empty());
  for (const auto& [id, endpoint] : options_.workers) {
    Worker& worker = workers_.emplace_back();
    worker.view.id = id;
    worker.endpoint = endpoint;
    worker.last_heartbeat = last_tick_;
  }
}

void RouterCore::on_accepted(wire::Accepted message) {
  wire::Request& request = message.request;
  if (requests_.contains(request.id)) return;  // a repeated message
  if (requests_.size() >= options_.requests_in_flight_max) {
    reject(request,
           {StatusCode::kResourceExhausted,
            "all " + std::to_string(options_.requests_in_flight_max) +
                " places for requests are taken; retry after the time in Retry-After"},
           predicted_wait());
    return;
  }
  std::vector<WorkerView> views;
  views.reserve(workers_.size());
  for (const Worker& worker : workers_) views.push_back(worker.view);
  const auto prompt_tokens = static_cast<uint32_t>(request.prompt.size());
  const auto choice = policy_.decide({views, prompt_tokens});
  if (!choice) {
    reject(request, {StatusCode::kUnavailable, "no worker can take requests: " + health().reason},
           kRetryAfterMin);
    return;
  }
  TROUPE_ASSERT(*choice < workers_.size() && workers_[*choice].view.accepting, *choice);
  Worker& worker = workers_[*choice];
  const Flight flight{request.gateway, *choice, 1, prompt_tokens, clock_.now()};
  const wire::Routed routed{std::move(request), flight.attempt};
  if (Status sent = outbox_.send(worker.endpoint, routed); !sent.ok()) {
    reject(routed.request, std::move(sent), kRetryAfterMin);
    return;
  }
  ++worker.view.requests;
  worker.view.prompt_tokens += prompt_tokens;
  requests_.emplace(routed.request.id, flight);
}

void RouterCore::on_cancelled(const wire::Cancelled& message) {
  const auto flight = requests_.find(message.request);
  if (flight == requests_.end()) return;
  // The place is free when the worker says `finished`, not before: it still holds blocks.
  if (const Status sent = outbox_.send(workers_[flight->second.worker].endpoint, message);
      !sent.ok()) {
    forget(flight);  // the worker is gone, and with it the blocks
  }
}

void RouterCore::on_finished(const wire::Finished& message) {
  const auto flight = requests_.find(message.request);
  if (flight == requests_.end() || flight->second.attempt != message.attempt) return;
  const double seconds =
      std::chrono::duration<double>(clock_.now() - flight->second.routed).count();
  mean_duration_s_ += kDurationWeight * (seconds - mean_duration_s_);
  forget(flight);
}

void RouterCore::on_heartbeat(const wire::Heartbeat& message) {
  Worker* worker = find_worker(message.worker);
  if (worker == nullptr) return;
  if (worker->incarnation != message.incarnation) {
    // Another life of the worker knows nothing of what was routed to the former one.
    if (worker->incarnation != 0) {
      lose_worker(static_cast<size_t>(worker - workers_.data()), "its worker was restarted");
    }
    worker->incarnation = message.incarnation;
  }
  worker->last_heartbeat = clock_.now();
  worker->heard = true;
  worker->stalled = message.stalled;
  if (message.stalled) {
    lose_worker(static_cast<size_t>(worker - workers_.data()),
                "its worker's device has made no progress for " +
                    std::to_string(message.step_age.count()) + " ms");
  }
  const bool changed = worker->view.accepting == message.stalled;
  worker->view.accepting = !message.stalled;
  if (changed) tell_health();
}

void RouterCore::on_tick() {
  const TimePoint now = clock_.now();
  const Duration since_tick = now - std::exchange(last_tick_, now);
  for (size_t i = 0; i < workers_.size(); ++i) {
    Worker& worker = workers_[i];
    if (since_tick > limits::kOwnPause) worker.last_heartbeat += since_tick;
    if (worker.heard && now - worker.last_heartbeat > limits::kHeartbeatTimeout) {
      worker.heard = false;
      worker.view.accepting = false;
      lose_worker(i, "its worker has not been heard of for " +
                         std::to_string(limits::kHeartbeatTimeout.count()) + " ms");
    }
  }
  tell_health();
}

void RouterCore::tell_health() {
  // A gateway that cannot be reached is on its way out; it needs no news.
  for (const std::string& gateway : options_.gateways) {
    [[maybe_unused]] const Status sent = outbox_.send(gateway, health());
  }
}

void RouterCore::reject(const wire::Request& request, Status error,
                        std::chrono::milliseconds retry_after) {
  // If the gateway is gone, so is whoever waited for the answer.
  [[maybe_unused]] const Status sent =
      outbox_.send(request.gateway, wire::Rejected{request.id, 0, std::move(error), retry_after});
}

void RouterCore::lose_worker(size_t index, const std::string& why) {
  std::vector<RequestId> lost;
  for (const auto& [id, flight] : requests_) {
    if (flight.worker == index) lost.push_back(id);
  }
  std::sort(lost.begin(), lost.end());
  for (const RequestId id : lost) {
    const auto flight = requests_.find(id);
    [[maybe_unused]] const Status told = outbox_.send(
        flight->second.gateway,
        wire::Rejected{id,
                       flight->second.attempt,
                       {StatusCode::kUnavailable, "the request was lost: " + why + "; retry it"},
                       kRetryAfterMin});
    // Should the worker come back as it was, it must not go on with what has ended here.
    [[maybe_unused]] const Status cancelled =
        outbox_.send(workers_[index].endpoint, wire::Cancelled{id, {}});
    forget(flight);
  }
}

void RouterCore::forget(Flights::iterator flight) {
  WorkerView& view = workers_[flight->second.worker].view;
  TROUPE_ASSERT(view.requests > 0 && view.prompt_tokens >= flight->second.prompt_tokens,
                view.requests, view.prompt_tokens, flight->second.prompt_tokens);
  --view.requests;
  view.prompt_tokens -= flight->second.prompt_tokens;
  requests_.erase(flight);
}

RouterCore::Worker* RouterCore::find_worker(WorkerId id) {
  for (Worker& worker : workers_) {
    if (worker.view.id == id) return &worker;
  }
  return nullptr;
}

wire::Health RouterCore::health() const {
  std::string reasons;
  for (const Worker& worker : workers_) {
    if (worker.view.accepting) return {true, ""};
    if (!reasons.empty()) reasons += "; ";
    reasons += "worker " + std::to_string(worker.view.id.value) +
               (worker.stalled ? " has a device that makes no progress"
                : worker.heard ? " does not accept requests"
                               : " has not been heard of");
  }
  return {false, reasons};
}

std::chrono::milliseconds RouterCore::predicted_wait() const {
  const double seconds =
      mean_duration_s_ / static_cast<double>(std::max<size_t>(1, requests_.size()));
  const auto wait = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000.0));
  return std::clamp(wait, kRetryAfterMin, kRetryAfterMax);
}

void RouterCore::check_invariants() const {
  TROUPE_ASSERT(requests_.size() <= options_.requests_in_flight_max, requests_.size());
  std::vector<uint32_t> requests(workers_.size());
  std::vector<uint64_t> tokens(workers_.size());
  for (const auto& [id, flight] : requests_) {
    TROUPE_ASSERT(flight.worker < workers_.size(), id, flight.worker);
    ++requests[flight.worker];
    tokens[flight.worker] += flight.prompt_tokens;
  }
  for (size_t i = 0; i < workers_.size(); ++i) {
    TROUPE_ASSERT(workers_[i].view.requests == requests[i], i, workers_[i].view.requests);
    TROUPE_ASSERT(workers_[i].view.prompt_tokens == tokens[i], i, workers_[i].view.prompt_tokens);
  }
}

}  // namespace troupe
