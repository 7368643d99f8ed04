#include "actors/gateway/gateway_core.h"

#include <glog/logging.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/assert.h"
#include "base/limits.h"

namespace troupe {
namespace {

// Of what is told of workers that cannot serve; further ones are left out.
constexpr size_t kReasonBytesMax = 1024;

double seconds_between(TimePoint from, TimePoint to) {
  return std::chrono::duration<double>(to - from).count();
}

// Seconds between two stops, where both were passed.
std::optional<double> seconds_between(std::optional<TimePoint> from, std::optional<TimePoint> to) {
  if (!from || !to) return std::nullopt;
  return seconds_between(*from, *to);
}

}  // namespace

GatewayCore::GatewayCore(const Clock& clock, wire::Outbox& outbox, ServingMetrics& metrics,
                         GatewayOptions options)
    : clock_(clock),
      outbox_(outbox),
      metrics_(metrics),
      options_(std::move(options)),
      next_id_(options_.first_id),
      last_health_(clock.now()),
      last_tick_(clock.now()) {
  // Workers name sequences of their own from 2^63 on.
  TROUPE_ASSERT(options_.first_id < uint64_t{1} << 62, options_.first_id);
}

Result<RequestId> GatewayCore::submit(GenerationRequest request, GenerationListener& listener) {
  TROUPE_ASSERT(!request.prompt.empty() && !request.choices.empty(), request.prompt.size(),
                request.choices.size());
  TROUPE_ASSERT(request.choices.size() <= limits::kChoicesMax, request.choices.size());
  TROUPE_RETURN_IF_ERROR(request.model.empty() ? health() : health_of(request.model));
  const RequestId id(next_id_++);
  wire::Accepted accepted;
  accepted.request = {id,
                      request.label,
                      options_.endpoint,
                      std::move(request.prompt),
                      {},
                      std::move(request.cache_salt),
                      clock_.now(),
                      std::move(request.model)};
  Request state;
  ServingMetrics& metrics =
      options_.metrics_of ? options_.metrics_of(accepted.request.model) : metrics_;
  state.metrics = &metrics;
  state.label = std::move(request.label);
  state.listener = &listener;
  state.prompt_tokens = static_cast<uint32_t>(accepted.request.prompt.size());
  state.accepted = accepted.request.accepted;
  metrics.request_params_n.Observe(static_cast<double>(request.choices.size()));
  for (SamplingParams& params : request.choices) {
    metrics.request_params_max_tokens.Observe(params.max_tokens);
    const SequenceId sequence(next_id_++);
    state.choices.emplace_back().sequence = sequence;
    accepted.request.sequences.push_back({sequence, std::move(params)});
  }
  state.choices_open = static_cast<uint32_t>(state.choices.size());
  TROUPE_RETURN_IF_ERROR(outbox_.send(options_.router, accepted));
  for (uint32_t i = 0; i < state.choices.size(); ++i) {
    sequences_.emplace(state.choices[i].sequence, Place{id, i});
  }
  requests_.emplace(id, std::move(state));
  return id;
}

void GatewayCore::cancel(RequestId id) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return;
  Request& request = found->second;
  request.metrics->finished_abort.Increment(request.choices_open);
  for (Choice& choice : request.choices) {
    if (!choice.ended) end_choice(request, choice);
  }
  // A router that cannot be reached is found lost by on_tick(); the request has ended here already.
  [[maybe_unused]] const Status sent = outbox_.send(options_.router, wire::Cancelled{id, {}});
  close(id, "cancelled");
}

GenerationUsage GatewayCore::cancel_choice(RequestId id, uint32_t index) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return {};
  Request& request = found->second;
  TROUPE_ASSERT(index < request.choices.size(), index, request.choices.size());
  Choice& choice = request.choices[index];
  if (choice.ended) return {};
  const GenerationUsage usage{request.prompt_tokens, choice.cached_tokens};
  const SequenceId sequence = choice.sequence;
  // The front ends cancel a choice for one reason: its stop string was found.
  request.metrics->finished_stop.Increment();
  measure_end(request, choice);
  end_choice(request, choice);
  [[maybe_unused]] const Status sent =
      outbox_.send(options_.router, wire::Cancelled{id, {sequence}});
  if (request.choices_open == 0) close(id, "stop");
  return usage;
}

void GatewayCore::on_emitted(const wire::Emitted& message) {
  const auto on_the_way = time_on_the_way(message);
  for (const wire::Emission& emission : message.emissions) on_emission(emission, on_the_way);
}

// By our clock; an offset is true only within its uncertainty, so a message may seem to arrive
// before it was sent.
std::optional<Duration> GatewayCore::time_on_the_way(const wire::Emitted& message) const {
  Duration offset{0};
  if (options_.clock_offset) {
    const auto node = worker_nodes_.find(message.worker);
    if (node == worker_nodes_.end()) return std::nullopt;
    const auto known = options_.clock_offset(node->second);
    if (!known) return std::nullopt;
    offset = *known;
  }
  return std::max(Duration{0}, clock_.now() - (message.sent - offset));
}

// A listener may cancel from inside any of its functions, so the request is looked up again after
// each call.
void GatewayCore::on_emission(const wire::Emission& emission, std::optional<Duration> on_the_way) {
  const auto alive = [&]() -> std::pair<Request*, Choice*> {
    const auto place = sequences_.find(emission.sequence);
    if (place == sequences_.end()) return {nullptr, nullptr};
    Request& request = requests_.at(place->second.request);
    return {&request, &request.choices[place->second.choice]};
  };
  auto [request, choice] = alive();
  if (choice == nullptr || request->attempt != emission.attempt) return;  // late: it has ended
  const RequestId id = emission.request;
  const auto index = static_cast<uint32_t>(choice - request->choices.data());
  if (emission.first_index > choice->tokens || emission.first_score > choice->scores) {
    [[maybe_unused]] const Status sent = outbox_.send(options_.router, wire::Cancelled{id, {}});
    return fail(id,
                {StatusCode::kInternal,
                 "tokens of the answer were lost on the way to the gateway; retry the request"});
  }
  take_stops(*request, *choice, emission);
  choice->compute += emission.compute;
  choice->network =
      choice->network && on_the_way ? std::optional(*choice->network + *on_the_way) : std::nullopt;
  if (!emission.prompt_scores.empty() && emission.first_score == choice->scores) {
    choice->scores += static_cast<uint32_t>(emission.prompt_scores.size());
    if (index == 0) request->listener->on_prompt_scores(emission.prompt_scores);
    std::tie(request, choice) = alive();
    if (choice == nullptr) return;
  }
  if (!emission.tokens.empty() && emission.first_index == choice->tokens) {
    take_tokens(*request, *choice, emission.tokens);
    request->listener->on_tokens(index, emission.tokens);
    std::tie(request, choice) = alive();
    if (choice == nullptr) return;
  }
  if (!emission.embedding.empty()) {
    request->listener->on_embedding(index, emission.embedding);
    std::tie(request, choice) = alive();
    if (choice == nullptr) return;
  }
  if (!emission.end) return;
  const wire::End& end = *emission.end;
  if (!end.error.ok()) {
    // One choice that fails takes its request with it: there is no answer with holes.
    [[maybe_unused]] const Status sent = outbox_.send(options_.router, wire::Cancelled{id, {}});
    return fail(id, end.error);
  }
  measure_end(*request, *choice);
  ServingMetrics& metrics = *request->metrics;
  (end.reason == FinishReason::kStop ? metrics.finished_stop : metrics.finished_length).Increment();
  end_choice(*request, *choice);
  GenerationListener* listener = request->listener;
  if (request->choices_open == 0) {
    close(id, end.reason == FinishReason::kStop ? "stop" : "length");
  }
  listener->on_finished(index, end.reason, end.stop_token, {end.prompt_tokens, end.cached_tokens});
}

void GatewayCore::take_tokens(Request& request, Choice& choice,
                              const std::vector<SampledToken>& tokens) {
  const TimePoint now = clock_.now();
  const auto count = static_cast<uint32_t>(tokens.size());
  if (choice.tokens == 0) {
    choice.first_token = now;
    request.metrics->time_to_first_token.Observe(seconds_between(request.accepted, now));
  } else {
    request.metrics->inter_token_latency.Observe(seconds_between(choice.last_token, now));
  }
  choice.last_token = now;
  choice.tokens += count;
  request.output_tokens += count;
  request.metrics->generation_tokens.Increment(count);
}

void GatewayCore::end_choice(Request& request, Choice& choice) {
  TROUPE_ASSERT(!choice.ended && request.choices_open > 0, choice.sequence, request.choices_open);
  choice.ended = true;
  --request.choices_open;
  const auto erased = sequences_.erase(choice.sequence);
  TROUPE_ASSERT(erased == 1, choice.sequence, erased);
}

void GatewayCore::on_rejected(const wire::Rejected& message) {
  fail(message.request, message.error);
}

void GatewayCore::fail(RequestId id, const Status& status) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return;
  Request& request = found->second;
  request.metrics->finished_error.Increment(request.choices_open);
  for (Choice& choice : request.choices) {
    if (!choice.ended) end_choice(request, choice);
  }
  GenerationListener* listener = request.listener;
  close(id, to_string(status.code()).data());
  listener->on_failed(status);
}

// A prompt counts once per request, and when it was computed: a request that fails or is cancelled
// before has cost nothing.
void GatewayCore::take_stops(Request& request, Choice& choice, const wire::Emission& emission) {
  for (const wire::StopTime& time : emission.stops) {
    auto& passed = choice.passed[static_cast<size_t>(time.stop)];
    if (!passed) passed = time.at;
  }
  choice.cached_tokens = emission.cached_tokens;
  const bool served = !emission.tokens.empty() || (emission.end && emission.end->error.ok());
  if (!served || std::exchange(request.counted, true)) return;
  request.metrics->prompt_tokens.Increment(request.prompt_tokens);
  request.metrics->request_prompt_tokens.Observe(request.prompt_tokens);
}

void GatewayCore::measure_end(const Request& request, const Choice& choice) {
  const TimePoint now = clock_.now();
  request.metrics->e2e_latency.Observe(seconds_between(request.accepted, now));
  request.metrics->request_generation_tokens.Observe(choice.tokens);
  request.metrics->compute_seconds.Observe(std::chrono::duration<double>(choice.compute).count());
  if (choice.network) {
    request.metrics->network_seconds.Observe(
        std::chrono::duration<double>(*choice.network).count());
  }
  const auto observe = [&](Stop stop, std::optional<double> seconds) {
    if (seconds) request.metrics->stop_seconds[static_cast<size_t>(stop)]->Observe(*seconds);
  };
  const auto at = [&](Stop stop) { return choice.passed[static_cast<size_t>(stop)]; };
  for (const Stop stop : {Stop::kReserved, Stop::kPrefilled, Stop::kMoved, Stop::kJoined}) {
    observe(stop, seconds_between(at(Stop::kRouted), at(stop)));
  }
  observe(Stop::kFinished, seconds_between(request.accepted, now));
  if (choice.tokens > 0) {
    observe(Stop::kEmitted, seconds_between(request.accepted, choice.first_token));
  }
  if (choice.tokens > 1) {
    const double decoding = seconds_between(choice.first_token, choice.last_token);
    request.metrics->decode_time.Observe(decoding);
    request.metrics->time_per_output_token.Observe(decoding / (choice.tokens - 1));
  }
  const auto queue = seconds_between(at(Stop::kRouted), at(Stop::kReserved));
  const auto prefill = seconds_between(at(Stop::kReserved), at(Stop::kJoined));
  if (queue) request.metrics->queue_time.Observe(*queue);
  if (prefill) request.metrics->prefill_time.Observe(*prefill);
  if (queue) {
    request.metrics->inference_time.Observe(seconds_between(request.accepted, now) - *queue);
  }
}

void GatewayCore::close(RequestId id, const char* how) {
  const auto found = requests_.find(id);
  TROUPE_ASSERT(found != requests_.end() && found->second.choices_open == 0, id);
  log(id, found->second, how);
  requests_.erase(found);
}

// One line per request. Stops of the worker are told from `routed` on, by its own clock; `emitted`
// and `finished` from `accepted` on, by the gateway's.
void GatewayCore::log(RequestId id, const Request& request, const char* how) const {
  std::ostringstream line;
  line.setf(std::ios::fixed);
  line.precision(1);
  line << "request " << id << " [" << request.label << "] " << how
       << " prompt=" << request.prompt_tokens;
  const Choice& first = request.choices[0];
  line << " cached=" << first.cached_tokens << " output=" << request.output_tokens
       << " n=" << request.choices.size();
  for (const Stop stop : {Stop::kReserved, Stop::kPrefilled, Stop::kMoved, Stop::kJoined}) {
    const auto seconds = seconds_between(first.passed[static_cast<size_t>(Stop::kRouted)],
                                         first.passed[static_cast<size_t>(stop)]);
    if (seconds) line << ' ' << to_string(stop) << "=routed+" << *seconds * 1e3 << "ms";
  }
  if (first.tokens > 0) {
    line << " emitted=+" << seconds_between(request.accepted, first.first_token) * 1e3 << "ms";
  }
  const auto milliseconds = [](Duration duration) {
    return std::chrono::duration<double, std::milli>(duration).count();
  };
  line << " compute=" << milliseconds(first.compute) << "ms";
  if (first.network) line << " network=" << milliseconds(*first.network) << "ms";
  line << " finished=+" << seconds_between(request.accepted, clock_.now()) * 1e3 << "ms";
  LOG(INFO) << line.str();
}

void GatewayCore::on_health(const wire::Health& message) {
  last_health_ = clock_.now();
  healthy_ = message.healthy;
  reason_ = message.reason;
  take_models(message);
  if (!options_.clock_offset) return;
  worker_nodes_.clear();
  for (const wire::WorkerStatus& worker : message.workers) {
    worker_nodes_.emplace(worker.worker, std::string(node_of(worker.endpoint)));
  }
}

void GatewayCore::on_tick() {
  const TimePoint now = clock_.now();
  const Duration since_tick = now - std::exchange(last_tick_, now);
  if (since_tick > limits::kOwnPause) last_health_ += since_tick;
  if (now - last_health_ <= limits::kHeartbeatTimeout) return;
  healthy_ = false;
  reason_ = "the router has not been heard of for " +
            std::to_string(limits::kHeartbeatTimeout.count()) + " ms";
  std::vector<RequestId> lost;
  for (const auto& [id, request] : requests_) lost.push_back(id);
  std::sort(lost.begin(), lost.end());
  for (const RequestId id : lost) fail(id, {StatusCode::kUnavailable, reason_ + "; retry"});
}

void GatewayCore::take_models(const wire::Health& message) {
  models_.clear();
  std::set<std::string_view> serving;
  for (const wire::WorkerStatus& worker : message.workers) {
    if (worker.role == wire::Role::kPrefill) continue;
    if (worker.accepting) serving.insert(worker.model);
    std::string& reason = models_[worker.model];
    if (reason.size() > kReasonBytesMax) continue;
    reason += (reason.empty() ? "worker " : "; worker ") + worker.endpoint + " is " + worker.state;
  }
  for (const std::string_view model : serving) models_.find(model)->second.clear();
}

Status GatewayCore::health_of(std::string_view model) const {
  TROUPE_RETURN_IF_ERROR(health());
  const auto known = models_.find(model);
  if (known != models_.end() && known->second.empty()) return ok_status();
  const std::string why =
      known == models_.end() ? "no worker that decodes has joined" : known->second;
  return {StatusCode::kUnavailable, "no worker can serve this model now: " + why + "; retry later"};
}

Status GatewayCore::health() const {
  if (healthy_) return ok_status();
  return {StatusCode::kUnavailable, "not ready to serve: " + reason_ + "; retry later"};
}

void GatewayCore::check_invariants() const {
  size_t open = 0;
  for (const auto& [id, request] : requests_) {
    TROUPE_ASSERT(request.choices_open > 0, id);
    uint32_t counted = 0;
    for (const Choice& choice : request.choices) counted += choice.ended ? 0 : 1;
    TROUPE_ASSERT(counted == request.choices_open, id, counted, request.choices_open);
    open += counted;
  }
  TROUPE_ASSERT(open == sequences_.size(), open, sequences_.size());
}

}  // namespace troupe
