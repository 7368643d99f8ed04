// The part of the decode worker that holds requests until their grammar is compiled.

#include <algorithm>
#include <utility>

#include "actors/decode/decode_core.h"
#include "base/assert.h"

namespace troupe {

// Makes the sequence the worker's; not yet the scheduler's.
Status DecodeCore::hold(const wire::Routed& message, Request& request, wire::Sequence& sequence) {
  if (sequences_.contains(sequence.id))
    return invalid_argument("sequence " + std::to_string(sequence.id.value) + " is already known");
  SequenceSpec spec;
  spec.id = sequence.id;
  spec.request = message.request.id;
  spec.prompt = request.prompt;
  spec.import_tokens_min = import_tokens_min(message, sequence);
  spec.import_tokens_max = message.prefill_tokens;
  spec.params = std::make_shared<const SamplingParams>(std::move(sequence.params));
  spec.cache_salt = request.cache_salt;
  spec.arrival = request.routed;
  // A request is compiled for once.
  if (!request.held.empty() && request.held.front().params->grammar != spec.params->grammar)
    return invalid_argument("the sequences of one request have different grammars");
  request.held.push_back(std::move(spec));
  request.open.push_back(sequence.id);
  Sequence& state = sequences_[sequence.id];
  state.request = message.request.id;
  state.prompt_tokens = static_cast<uint32_t>(request.prompt->size());
  state.stops.push_back({Stop::kRouted, request.routed});
  return ok_status();
}

void DecodeCore::start_request(RequestId id) {
  Request& request = requests_.at(id);
  if (request.held.empty()) return;
  const GrammarSpec& grammar = request.held.front().params->grammar;
  if (grammar.empty()) return admit(id, nullptr);
  Status status = watch_.failed();
  if (status.ok() && grammars_ == nullptr)
    status = {StatusCode::kUnsupported, "this worker cannot hold answers to a grammar"};
  const uint64_t ticket = next_ticket_++;
  if (status.ok()) status = grammars_->compile(ticket, grammar);
  if (!status.ok()) return fail_request(id, request.open.front(), status);
  request.ticket = ticket;
  tickets_.emplace(ticket, id);
}

void DecodeCore::on_grammar_compiled(
    uint64_t ticket, const Result<std::shared_ptr<const CompiledGrammar>>& grammar) {
  const auto found = tickets_.find(ticket);
  if (found == tickets_.end()) return;
  const RequestId id = found->second;
  tickets_.erase(found);
  Request& request = requests_.at(id);
  request.ticket = 0;
  TROUPE_ASSERT(!request.open.empty(), id);
  if (grammar.ok()) {
    admit(id, grammar.value().get());
  } else {
    fail_request(id, request.open.front(), grammar.status());
  }
  act();
}

void DecodeCore::admit(RequestId id, const CompiledGrammar* grammar) {
  for (SequenceSpec& spec : std::exchange(requests_.at(id).held, {})) {
    if (!sequences_.contains(spec.id)) continue;  // cancelled meanwhile
    const SequenceId sequence = spec.id;
    const Status added = add_sequence(std::move(spec), grammar);
    // The gateway ends the whole request on the first sequence that fails.
    if (!added.ok()) return fail_request(id, sequence, added);
  }
}

Status DecodeCore::add_sequence(SequenceSpec spec, const CompiledGrammar* grammar) {
  TROUPE_RETURN_IF_ERROR(watch_.failed());
  if (heartbeats_.left()) return {StatusCode::kUnavailable, "the worker has left; retry"};
  if (grammar != nullptr) {
    TROUPE_ASSIGN_OR_RETURN(spec.grammar, grammar->start({}));
  }
  return scheduler_.add(std::move(spec));
}

void DecodeCore::fail_request(RequestId id, SequenceId sequence, const Status& status) {
  refuse(requests_.at(id), id, sequence, status);
  drop_request(id);
}

void DecodeCore::fail_held(const Status& status) {
  std::vector<RequestId> held;
  for (const auto& [ticket, id] : tickets_) held.push_back(id);
  for (const RequestId id : held) fail_request(id, requests_.at(id).open.front(), status);
}

uint32_t DecodeCore::held_sequences() const {
  size_t count = 0;
  for (const auto& [ticket, id] : tickets_) count += requests_.at(id).open.size();
  return static_cast<uint32_t>(count);
}

}  // namespace troupe
