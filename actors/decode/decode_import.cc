// The part of the decode worker that moves KV: prompts computed elsewhere, stops `reserved` to
// `moved`, and those that it gives to others.

#include <algorithm>
#include <utility>

#include "actors/decode/decode_core.h"
#include "base/assert.h"
#include "base/limits.h"

namespace troupe {

uint32_t DecodeCore::import_tokens_min(const wire::Routed& message,
                                       const wire::Sequence& sequence) const {
  // Scores and means of prompt tokens need their rows, which only whoever computes them has.
  const bool needs_rows =
      sequence.params.prompt_logprobs >= 0 || sequence.params.pooling == Pooling::kMean;
  const bool possible = landings_ != nullptr && !message.prefill.empty() && !needs_rows;
  return possible ? std::max(1U, options_.import_tokens_min) : 0;
}

void DecodeCore::start_import(const Import& import) {
  const Sequence& sequence = sequences_.at(import.sequence);
  const RequestId id = sequence.request;
  const Request& request = requests_.at(id);
  TROUPE_ASSERT(landings_ != nullptr && !request.prefill.empty(), import.sequence);
  const uint64_t epoch = next_epoch_++;
  auto ticket = landings_->open({.blocks = import.blocks,
                                 .window_first = import.window_first,
                                 .window_blocks = import.window_blocks},
                                id.value, uint64_t{request.attempt} << 32 | epoch);
  if (!ticket.ok()) {
    // Too many are open already: this one is computed here.
    return scheduler_.on_import_ended(import.sequence, 0, 0);
  }
  const uint32_t tokens = import.tokens - import.first_block * kBlockTokens;
  const Duration patience = import_patience(request, tokens);
  wire::Reserved order;
  order.request = id;
  order.attempt = request.attempt;
  order.reply_to = options_.identity.endpoint;
  order.ticket = ticket.value();
  order.tokens.assign(request.prompt->begin(), request.prompt->begin() + import.tokens);
  order.cache_salt = request.cache_salt;
  order.first_block = import.first_block;
  order.deadline = std::chrono::duration_cast<std::chrono::milliseconds>(patience);
  order.layers = options_.kv.layers;
  order.block_bytes = options_.kv.block_bytes;
  order.model = options_.kv.model;
  order.window_layers = options_.kv.window_layers;
  order.window = options_.kv.window;
  order.kv_type = options_.kv.type;
  const TimePoint now = clock_.now();
  OngoingImport& ongoing = imports_.add({.landing = order.ticket.landing,
                                         .sequence = import.sequence,
                                         .prefill = request.prefill,
                                         .tokens = tokens,
                                         .started = now,
                                         .deadline = now + patience});
  if (!outbox_.send(ongoing.prefill, order).ok()) close_import(ongoing);
}

Duration DecodeCore::import_patience(const Request& request, uint32_t tokens) const {
  std::optional<double> seconds = imports_.predict_seconds(request.prefill, tokens);
  // A worker that nothing is known of is taken to be as fast as this one.
  if (!seconds && watch_.seconds_per_token() > 0.0) seconds = watch_.seconds_per_token() * tokens;
  if (!seconds) return request.prefill_wait + limits::kImportDeadlineUnknown;
  const auto predicted = request.prefill_wait + std::chrono::duration_cast<Duration>(
                                                    std::chrono::duration<double>(*seconds));
  const auto patience =
      std::chrono::duration_cast<Duration>(predicted * limits::kImportDeadlineFactor);
  return std::max<Duration>(limits::kImportDeadlineFloor, patience);
}

void DecodeCore::on_prefilled(const wire::Prefilled& message) {
  OngoingImport* import = imports_.find(message.landing);
  if (import == nullptr || import->closing) return;
  if (message.error.ok()) {
    import->cached_tokens = message.cached_tokens;
    imports_.learn(*import, clock_.now());
    const auto sequence = sequences_.find(import->sequence);
    if (sequence != sequences_.end()) {
      sequence->second.prefilled = clock_.now();
      sequence->second.compute += message.compute_finished - message.compute_started;
    }
  }
  close_import(*import);
}

void DecodeCore::on_reserved(wire::Reserved message) {
  Status unable = watch_.failed();
  if (unable.ok() && draining_) {
    unable = {StatusCode::kUnavailable, "this decode worker is about to leave"};
  }
  if (unable.ok() && landings_ == nullptr) {
    unable = {StatusCode::kUnsupported, "this worker moves no KV"};
  }
  orders_.on_reserved(std::move(message), unable);
  act();
}

void DecodeCore::on_released(const wire::Released& message) {
  orders_.on_released(message);
  act();
}

void DecodeCore::on_exported(uint64_t landing, const Status& status) {
  orders_.on_exported(landing, status);
  act();
}

// The landing comes back by on_landing_closed(), with what has arrived by then.
void DecodeCore::close_import(OngoingImport& import) {
  if (std::exchange(import.closing, true)) return;
  landings_->close(import.landing);
}

void DecodeCore::give_up_import(OngoingImport& import) {
  if (import.closing) return;
  // If it does not arrive, the prefill worker finds its next part refused.
  [[maybe_unused]] const Status sent = outbox_.send(import.prefill, wire::Released{import.landing});
  close_import(import);
}

void DecodeCore::on_landing_closed(uint64_t landing, uint32_t blocks) {
  const OngoingImport* import = imports_.find(landing);
  TROUPE_ASSERT(import != nullptr && import->closing, landing);
  const OngoingImport ended = *import;
  imports_.erase(landing);
  const auto sequence = sequences_.find(ended.sequence);
  if (sequence != sequences_.end() && sequence->second.prefilled) {
    sequence->second.moved = clock_.now();
    sequence->second.cached_tokens = std::max(sequence->second.cached_tokens, ended.cached_tokens);
  }
  metrics_.kv_blocks_imported.Increment(blocks);
  (blocks * kBlockTokens >= ended.tokens ? metrics_.kv_imports_whole : metrics_.kv_imports_cut)
      .Increment();
  scheduler_.on_import_ended(ended.sequence, blocks, ended.cached_tokens);
  act();
}

}  // namespace troupe
