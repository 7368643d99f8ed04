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
      last_tick_(clock.now()),
      hasher_(options_.hash_seed),
      prefixes_(hasher_) {}

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
  if (Status known = resolve_model(request); !known.ok()) {
    reject(request, std::move(known), kRetryAfterMin);
    return;
  }
  std::vector<WorkerView> views = workers_.views(request.model);
  const PrefixIndex::Chain chain =
      prefixes_.chain_of(request.model, request.cache_salt, request.prompt);
  for (WorkerView& view : views) view.cached_tokens = prefixes_.cached_tokens(view.id, chain);
  const auto prompt_tokens = static_cast<uint32_t>(request.prompt.size());
  const auto choice = policy_.decide({views, prompt_tokens});
  if (!choice) {
    reject(request,
           {StatusCode::kUnavailable,
            "no worker can take requests for this model: " + workers_.unhealthy(request.model)},
           kRetryAfterMin);
    return;
  }
  const wire::Routed routed = plan(std::move(request), *choice, views);
  const WorkerId id = views[choice->decode].id;
  Worker& worker = *workers_.find(id);
  if (Status sent = outbox_.send(worker.endpoint, routed); !sent.ok()) {
    reject(routed.request, std::move(sent), kRetryAfterMin);
    return;
  }
  ++worker.requests;
  worker.prompt_tokens += prompt_tokens;
  remember(*choice, views, chain);
  requests_.emplace(routed.request.id, Flight{routed.request.gateway, id, routed.attempt,
                                              prompt_tokens, clock_.now()});
}

Status RouterCore::resolve_model(wire::Request& request) const {
  if (!request.model.empty()) return ok_status();
  if (workers_.all().empty()) {
    return {StatusCode::kUnavailable, "no worker can take requests: " + workers_.unhealthy()};
  }
  const std::optional<std::string> only = workers_.only_model();
  if (!only) {
    return {StatusCode::kNotFound, "this cluster has several models; name one of them", "model"};
  }
  request.model = *only;
  return ok_status();
}

// Who will have what to compute, and hold it then.
void RouterCore::remember(const RoutePlan& plan, std::span<const WorkerView> views,
                          const PrefixIndex::Chain& chain) {
  const auto prompt_tokens = static_cast<uint32_t>(chain.size() * kBlockTokens);
  const size_t computes =
      plan.prefill && views[*plan.prefill].prefills ? *plan.prefill : plan.decode;
  const WorkerView& view = views[computes];
  workers_.find(view.id)->sent_tokens +=
      prompt_tokens - std::min(prompt_tokens, view.cached_tokens);
  for (const size_t index : {plan.decode, computes}) {
    const Worker& worker = *workers_.find(views[index].id);
    prefixes_.insert(views[index].id, chain, worker.load.blocks_total);
  }
}

wire::Routed RouterCore::plan(wire::Request&& request, const RoutePlan& plan,
                              std::span<const WorkerView> views) {
  TROUPE_ASSERT(plan.decode < views.size(), plan.decode);
  TROUPE_ASSERT(views[plan.decode].accepting && views[plan.decode].decodes, plan.decode);
  wire::Routed routed;
  TROUPE_ASSERT(workers_.find(views[plan.decode].id)->model == request.model, request.model);
  routed.request = std::move(request);
  routed.attempt = 1;
  routed.router = options_.endpoint;
  if (plan.prefill) {
    TROUPE_ASSERT(*plan.prefill < views.size(), *plan.prefill);
    TROUPE_ASSERT(views[*plan.prefill].accepting && *plan.prefill != plan.decode, *plan.prefill);
    // KV means something to workers of one model alone.
    TROUPE_ASSERT(workers_.find(views[*plan.prefill].id)->model == routed.request.model,
                  routed.request.model);
    routed.prefill_tokens = plan.prefill_tokens;
    routed.prefill = workers_.find(views[*plan.prefill].id)->endpoint;
    routed.prefill_wait =
        std::chrono::milliseconds(static_cast<int64_t>(plan.prefill_wait_seconds * 1000.0));
  }
  return routed;
}

void RouterCore::on_cancelled(const wire::Cancelled& message) {
  const auto flight = requests_.find(message.request);
  if (flight == requests_.end()) return;
  // The place is free when the worker says `finished`, not before: it still holds blocks.
  const Worker& worker = *workers_.find(flight->second.worker);
  if (const Status sent = outbox_.send(worker.endpoint, message); !sent.ok()) {
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
  const bool was_healthy = workers_.unhealthy().empty();
  const auto taken = workers_.take(message, clock_.now());
  if (!taken.ok()) {
    [[maybe_unused]] const Status sent =
        outbox_.send(message.endpoint, wire::Refused{taken.status().message()});
    return;
  }
  if (!taken.value().lost.empty()) lose(message.worker, taken.value().lost);
  if (was_healthy != workers_.unhealthy().empty()) tell_health();
}

void RouterCore::on_observe(const wire::Observe& message) {
  const auto known = observers_.find(message.endpoint);
  if (known == observers_.end() && observers_.size() >= limits::kObserversMax) return;
  observers_[message.endpoint] = clock_.now();
}

void RouterCore::on_peer_lost(std::string_view node, const std::string& why) {
  for (const WorkerId id : workers_.lose_node(node, why, clock_.now())) {
    lose(id, workers_.find(id)->lost);
  }
  tell_health();
}

void RouterCore::on_tick() {
  const TimePoint now = clock_.now();
  const Duration since_tick = now - std::exchange(last_tick_, now);
  if (since_tick > limits::kOwnPause) workers_.excuse(since_tick);
  for (const WorkerId id : workers_.lose_silent(now)) {
    lose(id, workers_.find(id)->lost);
  }
  workers_.forget_old(now);
  std::erase_if(observers_, [now](const auto& observer) {
    return now - observer.second > limits::kHeartbeatTimeout;
  });
  tell_health();
}

wire::Health RouterCore::health() const {
  const std::string why = workers_.unhealthy();
  return {why.empty(), why, workers_.statuses(clock_.now()),
          static_cast<uint32_t>(requests_.size())};
}

void RouterCore::tell_health() {
  const wire::Health news = health();
  // One that cannot be reached is on its way out; it needs no news.
  for (const std::string& gateway : options_.gateways) {
    [[maybe_unused]] const Status sent = outbox_.send(gateway, news);
  }
  for (const auto& [observer, asked] : observers_) {
    [[maybe_unused]] const Status sent = outbox_.send(observer, news);
  }
}

void RouterCore::reject(const wire::Request& request, Status error,
                        std::chrono::milliseconds retry_after) {
  // If the gateway is gone, so is whoever waited for the answer.
  [[maybe_unused]] const Status sent =
      outbox_.send(request.gateway, wire::Rejected{request.id, 0, std::move(error), retry_after});
}

void RouterCore::lose(WorkerId id, const std::string& why) {
  prefixes_.forget(id);
  const Worker& worker = *workers_.find(id);
  std::vector<RequestId> lost;
  for (const auto& [request, flight] : requests_) {
    if (flight.worker == id) lost.push_back(request);
  }
  std::sort(lost.begin(), lost.end());
  for (const RequestId request : lost) {
    const auto flight = requests_.find(request);
    [[maybe_unused]] const Status told = outbox_.send(
        flight->second.gateway,
        wire::Rejected{request,
                       flight->second.attempt,
                       {StatusCode::kUnavailable, "the request was lost: " + why + "; retry it"},
                       kRetryAfterMin});
    // Should the worker come back as it was, it must not go on with what has ended here.
    [[maybe_unused]] const Status cancelled =
        outbox_.send(worker.endpoint, wire::Cancelled{request, {}});
    forget(flight);
  }
}

void RouterCore::forget(Flights::iterator flight) {
  Worker& worker = *workers_.find(flight->second.worker);
  TROUPE_ASSERT(worker.requests > 0 && worker.prompt_tokens >= flight->second.prompt_tokens,
                worker.requests, worker.prompt_tokens, flight->second.prompt_tokens);
  --worker.requests;
  worker.prompt_tokens -= flight->second.prompt_tokens;
  requests_.erase(flight);
}

std::chrono::milliseconds RouterCore::predicted_wait() const {
  const double seconds =
      mean_duration_s_ / static_cast<double>(std::max<size_t>(1, requests_.size()));
  const auto wait = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000.0));
  return std::clamp(wait, kRetryAfterMin, kRetryAfterMax);
}

void RouterCore::check_invariants() const {
  TROUPE_ASSERT(requests_.size() <= options_.requests_in_flight_max, requests_.size());
  std::map<WorkerId, std::pair<uint32_t, uint64_t>> sums;
  for (const auto& [id, flight] : requests_) {
    TROUPE_ASSERT(workers_.all().contains(flight.worker), id, flight.worker);
    auto& [requests, tokens] = sums[flight.worker];
    ++requests;
    tokens += flight.prompt_tokens;
  }
  for (const auto& [id, worker] : workers_.all()) {
    TROUPE_ASSERT(worker.requests == sums[id].first, id, worker.requests);
    TROUPE_ASSERT(worker.prompt_tokens == sums[id].second, id, worker.prompt_tokens);
  }
}

}  // namespace troupe
