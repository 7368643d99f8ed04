#include "actors/decode/decode_core.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace troupe {
DecodeCore::DecodeCore(const Clock& clock, wire::Outbox& outbox, WorkerPorts& ports,
                       LandingPort* landings, ServingMetrics& metrics, DecodeOptions options,
                       GrammarPort* grammars)
    : clock_(clock),
      outbox_(outbox),
      ports_(ports),
      landings_(landings),
      metrics_(metrics),
      options_(std::move(options)),
      scheduler_(options_.scheduler),
      grammars_(grammars),
      orders_(clock, outbox, scheduler_, metrics, options_.kv),
      heartbeats_(outbox, options_.identity),
      watch_(clock) {
  kv_stats_.blocks_total = kv_stats_.blocks_free = options_.scheduler.blocks_total;
}

void DecodeCore::on_routed(wire::Routed message) {
  wire::Request& incoming = message.request;
  if (const auto known = requests_.find(incoming.id); known != requests_.end()) {
    if (known->second.attempt >= message.attempt) return;  // a repeated message
    drop_request(incoming.id);
  }
  Request& request = requests_[incoming.id];
  request.attempt = message.attempt;
  request.gateway = incoming.gateway;
  request.router = message.router;
  request.prefill = message.prefill;
  request.prefill_wait = message.prefill_wait;
  request.cache_salt = incoming.cache_salt;
  request.routed = clock_.now();
  request.prompt = std::make_shared<const std::vector<TokenId>>(std::move(incoming.prompt));
  for (wire::Sequence& sequence : incoming.sequences) {
    const Status held = hold(message, request, sequence);
    if (held.ok()) continue;
    fail_request(incoming.id, sequence.id, held);
    return act();
  }
  start_request(incoming.id);
  act();
}

void DecodeCore::on_cancelled(const wire::Cancelled& message) {
  const auto found = requests_.find(message.request);
  if (found == requests_.end()) return;
  if (message.sequences.empty()) {
    drop_request(message.request);
  } else {
    for (const SequenceId id : message.sequences) {
      const auto sequence = sequences_.find(id);
      if (sequence == sequences_.end() || sequence->second.request != message.request) continue;
      scheduler_.cancel(id);
      forget_sequence(id);
    }
  }
  act();
}

void DecodeCore::on_kv_replies(const std::vector<KvReply>& replies, const KvStats& stats) {
  kv_stats_ = stats;
  if (replies.empty()) return;
  for (const KvReply& reply : replies) {
    if (const auto* reserved = std::get_if<KvReserved>(&reply)) {
      const auto sequence = sequences_.find(reserved->sequence);
      // A preempted sequence reserves again; its stop is the first time.
      if (sequence != sequences_.end() && !std::exchange(sequence->second.reserved, true)) {
        sequence->second.stops.push_back({Stop::kReserved, clock_.now()});
        sequence->second.cached_tokens = reserved->cached_tokens;
      }
      orders_.on_kv_reserved(*reserved);
    }
    scheduler_.on_kv_reply(reply);
  }
  act();
}

void DecodeCore::on_step_done(Result<StepResult> result) {
  if (!result.ok()) {
    watch_.on_failed(
        {StatusCode::kUnavailable, "the worker's device failed: " + result.status().message()});
    scheduler_.fail_all(watch_.failed());
    fail_held(watch_.failed());
    orders_.on_device_failed();
    return act();
  }
  StepResult& step = result.value();
  watch_.on_done(step);
  step_number_ = step.number;
  device_started_ = step.started;
  device_finished_ = step.finished;
  for (const SliceResult& slice : step.slices) {
    const auto sequence = sequences_.find(slice.sequence);
    if (sequence != sequences_.end()) sequence->second.compute += step.finished - step.started;
  }
  orders_.on_step_done(step);
  scheduler_.on_step_result(std::move(step));
  act();
}

void DecodeCore::drain() {
  draining_ = true;
  on_tick();  // the routers hear of it now
}

void DecodeCore::on_tick() {
  watch_.on_tick();
  if (grammars_ != nullptr) grammars_->on_tick();
  wire::Load load = load_of(scheduler_, watch_, kv_stats_);
  load.waiting += held_sequences();
  heartbeats_.send(watch_, load, draining_);
  for (const uint64_t landing : imports_.overdue(clock_.now())) {
    give_up_import(*imports_.find(landing));
  }
  orders_.on_tick();
  act();
}

void DecodeCore::on_peer_lost(std::string_view node) {
  for (const uint64_t landing : imports_.from_node(node)) close_import(*imports_.find(landing));
  drop_requests_where([node](const Request& request) { return node_of(request.gateway) == node; });
  orders_.on_peer_lost(node);
  act();
}

// Ends the requests that nobody reads.
template <class Matches>
void DecodeCore::drop_requests_where(Matches&& matches) {
  std::vector<RequestId> orphans;
  for (const auto& [id, request] : requests_) {
    if (matches(request)) orphans.push_back(id);
  }
  std::sort(orphans.begin(), orphans.end());
  for (const RequestId id : orphans) drop_request(id);
}

// Does what follows from the events that came in, and from that: blocks that a request gives back
// go back now, not with the next event.
void DecodeCore::act() {
  for (Actions actions = scheduler_.take_actions(); !actions.empty();
       actions = scheduler_.take_actions()) {
    do_actions(std::move(actions));
  }
  // After the emissions: a router that knows of no request has nothing to end when this worker is
  // lost together with an answer's last tokens.
  for (const auto& [router, finished] : std::exchange(finished_, {})) {
    [[maybe_unused]] const Status sent = outbox_.send(router, finished);
  }
  report_gauges();
}

void DecodeCore::do_actions(Actions actions) {
  if (!actions.kv.empty()) ports_.ask_kv(std::move(actions.kv));
  if (actions.step) {
    metrics_.iteration_tokens.Observe(tokens_of(*actions.step));
    orders_.add_exports(*actions.step);
    watch_.on_submitted(*actions.step);
    ports_.submit(std::move(*actions.step));
  }
  for (const Import& import : actions.imports) start_import(import);
  emit(std::move(actions.emissions));
}

void DecodeCore::emit(std::vector<Emission> emissions) {
  Outgoing outgoing;
  for (Emission& emission : emissions) {
    if (ExportOrders::owns(emission.sequence)) {
      orders_.on_emission(emission);
    } else {
      add_emission(std::move(emission), outgoing);
    }
  }
  for (auto& [gateway, message] : outgoing) {
    message.worker = options_.identity.worker;
    message.step = step_number_;
    message.device_started = device_started_;
    message.device_finished = device_finished_;
    message.sent = clock_.now();
    if (outbox_.send(gateway, message).ok()) continue;
    drop_requests_where([&gateway](const Request& request) { return request.gateway == gateway; });
  }
}

void DecodeCore::add_emission(Emission&& emission, Outgoing& outgoing) {
  const auto found = sequences_.find(emission.sequence);
  TROUPE_ASSERT(found != sequences_.end(), emission.sequence);
  Sequence& sequence = found->second;
  const auto owner = requests_.find(sequence.request);
  TROUPE_ASSERT(owner != requests_.end(), sequence.request);
  const Request& request = owner->second;
  wire::Emission out;
  out.request = sequence.request;
  out.sequence = emission.sequence;
  out.attempt = request.attempt;
  out.first_index = sequence.tokens;
  out.first_score = sequence.scores;
  out.cached_tokens = sequence.cached_tokens;
  if (sequence.tokens == 0 && !emission.tokens.empty()) {
    // KV that was computed here stands where it was computed.
    sequence.stops.push_back({Stop::kPrefilled, sequence.prefilled.value_or(device_finished_)});
    sequence.stops.push_back({Stop::kMoved, sequence.moved.value_or(device_finished_)});
    sequence.stops.push_back({Stop::kJoined, clock_.now()});
  }
  sequence.tokens += static_cast<uint32_t>(emission.tokens.size());
  sequence.scores += static_cast<uint32_t>(emission.prompt_scores.size());
  const bool ended = emission.end.has_value() || !emission.failed.ok();
  if (ended) {
    sequence.stops.push_back({Stop::kFinished, clock_.now()});
    out.end = end_of(sequence, emission);
  }
  out.stops = std::exchange(sequence.stops, {});
  out.compute = std::exchange(sequence.compute, Duration{0});
  out.tokens = std::move(emission.tokens);
  out.prompt_scores = std::move(emission.prompt_scores);
  out.embedding = std::move(emission.embedding);
  outgoing[request.gateway].emissions.push_back(std::move(out));
  if (ended) forget_sequence(emission.sequence);
}

wire::End DecodeCore::end_of(const Sequence& sequence, const Emission& emission) {
  wire::End end;
  end.error = emission.failed;
  end.prompt_tokens = sequence.prompt_tokens;
  if (emission.end) {
    end.reason = emission.end->reason;
    end.stop_token = emission.end->stop_token;
    end.cached_tokens = emission.end->cached_tokens;
  }
  end.output_tokens = sequence.tokens;
  return end;
}

void DecodeCore::refuse(const Request& request, RequestId id, SequenceId sequence,
                        const Status& status) {
  wire::Emitted message;
  message.worker = options_.identity.worker;
  message.step = step_number_;
  message.sent = clock_.now();
  wire::Emission& emission = message.emissions.emplace_back();
  emission.request = id;
  emission.sequence = sequence;
  emission.attempt = request.attempt;
  emission.end = wire::End{};
  emission.end->error = status;
  [[maybe_unused]] const Status sent = outbox_.send(request.gateway, message);
}

// The sequence has ended, here and in the scheduler.
void DecodeCore::forget_sequence(SequenceId id) {
  const auto found = sequences_.find(id);
  TROUPE_ASSERT(found != sequences_.end(), id);
  const RequestId request_id = found->second.request;
  sequences_.erase(found);
  if (OngoingImport* import = imports_.find(id)) give_up_import(*import);
  Request& request = requests_.at(request_id);
  const auto erased = std::erase(request.open, id);
  TROUPE_ASSERT(erased == 1, id, erased);
  if (request.open.empty()) drop_request(request_id);
}

// Ends what is left of the request. The router hears with act() that it has its place back.
void DecodeCore::drop_request(RequestId id) {
  const auto found = requests_.find(id);
  TROUPE_ASSERT(found != requests_.end(), id);
  if (const uint64_t ticket = found->second.ticket; ticket != 0) {
    grammars_->give_up(ticket);
    tickets_.erase(ticket);
  }
  for (const SequenceId sequence : found->second.open) {
    if (OngoingImport* import = imports_.find(sequence)) give_up_import(*import);
    scheduler_.cancel(sequence);
    sequences_.erase(sequence);
  }
  finished_.emplace_back(std::move(found->second.router),
                         wire::Finished{id, found->second.attempt, options_.identity.worker});
  requests_.erase(found);
}

void DecodeCore::report_gauges() {
  const SchedulerStats stats = scheduler_.stats();
  metrics_.requests_running.Set(stats.running);
  metrics_.requests_waiting.Set(stats.waiting + held_sequences());
  const auto count = [](prometheus::Counter& counter, uint64_t now, uint64_t& reported) {
    counter.Increment(static_cast<double>(now - std::exchange(reported, now)));
  };
  count(metrics_.preemptions, stats.preemptions, reported_.preemptions);
  count(metrics_.spec_drafts, stats.drafts, reported_.drafts);
  count(metrics_.spec_draft_tokens, stats.guessed_tokens, reported_.guessed_tokens);
  count(metrics_.spec_accepted_tokens, stats.right_tokens, reported_.right_tokens);
}

void DecodeCore::check_invariants() const {
  scheduler_.check_invariants();
  orders_.check_invariants();
  size_t open = 0;
  for (const auto& [id, request] : requests_) {
    TROUPE_ASSERT(!request.open.empty(), id);
    for (const SequenceId sequence : request.open) {
      TROUPE_ASSERT(sequences_.at(sequence).request == id, sequence, id);
    }
    open += request.open.size();
  }
  TROUPE_ASSERT(open == sequences_.size(), open, sequences_.size());
  for (const auto& [ticket, id] : tickets_)
    TROUPE_ASSERT(requests_.at(id).ticket == ticket && !requests_.at(id).held.empty(), id, ticket);
}

}  // namespace troupe
