#include "engine/schedule/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "engine/kv/window.h"
#include "engine/schedule/scheduled_sequence.h"

namespace troupe {
namespace {

uint64_t blocks_for(uint64_t tokens) {
  return (tokens + kBlockTokens - 1) / kBlockTokens;
}

bool contains(const std::vector<TokenId>& tokens, TokenId token) {
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

}  // namespace

Scheduler::Scheduler(SchedulerOptions options)
    : options_(std::move(options)), pace_(options_.step_time, options_.step_tokens_max) {
  TROUPE_ASSERT(options_.blocks_total > 0, options_.blocks_total);
  TROUPE_ASSERT(options_.context_tokens > 0, options_.context_tokens);
  TROUPE_ASSERT(options_.step_tokens_max > 0, options_.step_tokens_max);
  TROUPE_ASSERT(options_.running_max > 0, options_.running_max);
  TROUPE_ASSERT(!windowed() || options_.window > 0, options_.window_blocks_total);
}

Scheduler::~Scheduler() = default;

// The last sampled token is never fed back, so it needs no KV.
uint32_t Scheduler::kv_tokens_max(const SequenceSpec& spec) const {
  const uint64_t prompt = spec.prompt->size();
  const uint64_t most = prompt + spec.params->max_tokens;
  if (spec.params->max_tokens == 0) return static_cast<uint32_t>(prompt);
  return static_cast<uint32_t>(std::min<uint64_t>(most, options_.context_tokens) - 1);
}

uint32_t Scheduler::extend_ahead() const {
  return std::max(kExtendAheadTokens, options_.guesses_max);
}

uint32_t Scheduler::window_needed(const SequenceSpec& spec, uint32_t step_tokens) const {
  const auto all = static_cast<uint32_t>(blocks_for(kv_tokens_max(spec)));
  return std::min(all, window_blocks_needed(options_.window, step_tokens));
}

Status Scheduler::check_size(const SequenceSpec& spec) const {
  const size_t prompt = spec.prompt->size();
  const uint32_t max_tokens = spec.params->max_tokens;
  if (prompt + (max_tokens > 0 ? 1 : 0) > options_.context_tokens) {
    return {StatusCode::kContextLength,
            "the prompt is too long: it has " + std::to_string(prompt) +
                " tokens, the model's maximum context length is " +
                std::to_string(options_.context_tokens) +
                " tokens and has to hold the output too: shorten the prompt",
            "prompt"};
  }
  const uint64_t needed = blocks_for(kv_tokens_max(spec)) * kBlockTokens;
  const uint64_t pool = uint64_t{options_.blocks_total} * kBlockTokens;
  if (needed > pool) {
    return {StatusCode::kContextLength,
            "a prompt of " + std::to_string(prompt) + " tokens and max_tokens " +
                std::to_string(max_tokens) + " need KV blocks for " + std::to_string(needed) +
                " tokens, this worker has blocks for " + std::to_string(pool) +
                ": shorten the prompt or lower max_tokens",
            "max_tokens"};
  }
  const uint32_t windowed_blocks = windowed() ? window_needed(spec, extend_ahead()) : 0;
  if (windowed_blocks > options_.window_blocks_total) {
    return {StatusCode::kContextLength,
            "a window of " + std::to_string(options_.window) + " tokens needs " +
                std::to_string(windowed_blocks) +
                " KV blocks of windowed layers, this worker has " +
                std::to_string(options_.window_blocks_total) + ": give it more memory for KV",
            "max_tokens"};
  }
  return ok_status();
}

Status Scheduler::add(SequenceSpec spec) {
  TROUPE_ASSERT(spec.prompt != nullptr && spec.params != nullptr, spec.id);
  TROUPE_ASSERT(spec.params->score_from >= 1, spec.id);
  if (spec.prompt->empty())
    return invalid_argument("the prompt has no tokens: give at least one", "prompt");
  TROUPE_ASSERT(!spec.prefill_only || spec.params->max_tokens == 0, spec.id);
  TROUPE_ASSERT(spec.import_tokens_min == 0 || spec.params->prompt_logprobs < 0, spec.id);
  TROUPE_ASSERT(spec.import_tokens_min == 0 || spec.params->pooling != Pooling::kMean, spec.id);
  const bool is_pooled = spec.params->pooling != Pooling::kNone;
  if (is_pooled && (spec.params->max_tokens > 0 || spec.params->prompt_logprobs >= 0))
    return invalid_argument("a pooled prompt has no output and no scores: set max_tokens to 0",
                            "pooling");
  const bool wants_prompt = spec.prefill_only || is_pooled || spec.params->prompt_logprobs >= 0;
  if (spec.params->max_tokens == 0 && !wants_prompt)
    return invalid_argument(
        "max_tokens is 0 and no prompt log-probabilities are asked for: ask for one of them",
        "max_tokens");
  if (sequences_.contains(spec.id))
    return invalid_argument("sequence " + std::to_string(spec.id.value) + " is already known");
  TROUPE_RETURN_IF_ERROR(check_size(spec));
  if (waiting_.size() >= options_.waiting_max)
    return {StatusCode::kResourceExhausted, std::to_string(waiting_.size()) +
                                                " sequences wait already, which is the limit: "
                                                "retry later"};
  auto sequence = std::make_unique<Sequence>();
  const TimePoint aged = spec.arrival + options_.ageing;
  sequence->rank = {spec.deadline ? std::min(*spec.deadline, aged) : aged, next_order_++};
  sequence->scores = spec.params->score_from - 1;
  sequence->is_windowed = windowed();
  sequence->spec = std::move(spec);
  waiting_.emplace(sequence->rank, sequence.get());
  const SequenceId id = sequence->spec.id;
  sequences_.emplace(id, std::move(sequence));
  return ok_status();
}

void Scheduler::cancel(SequenceId id) {
  drop_emission(id);
  Sequence* sequence = find(id);
  if (sequence == nullptr) return;
  if (sequence->in_flight > 0 || sequence->importing)
    sequence->cancelled = true;
  else
    release_and_forget(*sequence);
}

Scheduler::Sequence* Scheduler::find(SequenceId id) {
  const auto found = sequences_.find(id);
  return found == sequences_.end() ? nullptr : found->second.get();
}

Emission& Scheduler::emission_of(Sequence& sequence) {
  // A turn rarely emits twice for one sequence, and then the last one is its own.
  if (!actions_.emissions.empty() && actions_.emissions.back().sequence == sequence.spec.id)
    return actions_.emissions.back();
  Emission& emission = actions_.emissions.emplace_back();
  emission.sequence = sequence.spec.id;
  emission.request = sequence.spec.request;
  return emission;
}

void Scheduler::drop_emission(SequenceId id) {
  std::erase_if(actions_.emissions,
                [id](const Emission& emission) { return emission.sequence == id; });
}

void Scheduler::end(Sequence& sequence, FinishReason reason, TokenId stop_token) {
  TROUPE_ASSERT(!sequence.ended && !sequence.cancelled, sequence.spec.id);
  sequence.ended = true;
  emission_of(sequence).end = Emission::End{.reason = reason,
                                            .stop_token = stop_token,
                                            .prompt_tokens = sequence.prompt_tokens(),
                                            .cached_tokens = sequence.cached_tokens.value_or(0),
                                            .preemptions = sequence.preemptions};
}

void Scheduler::release_and_forget(Sequence& sequence) {
  TROUPE_ASSERT(sequence.in_flight == 0 && !sequence.importing, sequence.spec.id,
                sequence.in_flight);
  if (sequence.attempt > 0) {
    actions_.kv.emplace_back(KvRelease{sequence.spec.id});
    ++give_back_epoch_;
  }
  if (sequence.state == Sequence::State::kReserving) {
    TROUPE_ASSERT(reserves_outstanding_ > 0, sequence.spec.id);
    --reserves_outstanding_;
  }
  ByRank& home = sequence.state == Sequence::State::kRunning ? running_ : waiting_;
  const size_t erased = home.erase(sequence.rank);
  TROUPE_ASSERT(erased == 1, sequence.spec.id);
  const SequenceId id = sequence.spec.id;  // the argument ends with its owner
  sequences_.erase(id);
}

void Scheduler::on_kv_reply(const KvReply& reply) {
  if (const auto* reserved = std::get_if<KvReserved>(&reply)) on_kv_reserved(*reserved);
  if (const auto* refused = std::get_if<KvRefused>(&reply)) on_kv_refused(*refused);
  if (const auto* extended = std::get_if<KvExtended>(&reply)) on_kv_extended(*extended);
  if (const auto* window = std::get_if<KvWindow>(&reply)) on_kv_window(*window);
}

void Scheduler::on_kv_reserved(const KvReserved& reply) {
  Sequence* sequence = find(reply.sequence);
  // Cancelled meanwhile: the release that followed the reserve has given the blocks back.
  if (sequence == nullptr || sequence->state != Sequence::State::kReserving) return;
  if (sequence->attempt != reply.attempt) return;
  TROUPE_ASSERT(reply.blocks.size() == blocks_for(sequence->known()), reply.sequence,
                reply.blocks.size(), sequence->known());
  TROUPE_ASSERT(reply.cached_tokens < sequence->known(), reply.sequence, reply.cached_tokens);
  TROUPE_ASSERT(reserves_outstanding_ > 0, reply.sequence);
  --reserves_outstanding_;
  waiting_.erase(sequence->rank);
  running_.emplace(sequence->rank, sequence);
  sequence->state = Sequence::State::kRunning;
  sequence->blocks = reply.blocks;
  if (windowed()) sequence->window_settles_at = sequence->known();
  sequence->window_first = reply.window_first;
  sequence->window.assign(reply.window_first, kNoBlock);
  sequence->window.insert(sequence->window.end(), reply.window_blocks.begin(),
                          reply.window_blocks.end());
  sequence->computed = reply.cached_tokens;
  sequence->committed_blocks = reply.cached_tokens / kBlockTokens;
  sequence->copy = reply.copy;
  sequence->reported = sequence->known();
  sequence->refused_epoch.reset();
  sequence->passes = 0;
  if (!sequence->cached_tokens) {
    const bool imports = reply.cached_tokens < import_below(*sequence);
    sequence->cached_tokens = reply.cached_tokens;
    if (imports) start_import(*sequence);
  }
  for (auto& [rank, waiting] : waiting_) {
    if (rank > sequence->rank) break;
    if (waiting->state == Sequence::State::kWaiting && waiting->refused_epoch) ++waiting->passes;
  }
}

void Scheduler::on_kv_refused(const KvRefused& reply) {
  Sequence* sequence = find(reply.sequence);
  if (sequence == nullptr || sequence->state != Sequence::State::kReserving) return;
  if (sequence->attempt != reply.attempt) return;
  const bool is_short = reply.blocks_needed > reply.blocks_available;
  const bool window_is_short = reply.window_needed > reply.window_available;
  TROUPE_ASSERT(is_short || window_is_short, reply.sequence, reply.blocks_needed,
                reply.blocks_available);
  TROUPE_ASSERT(reserves_outstanding_ > 0, reply.sequence);
  --reserves_outstanding_;
  sequence->state = Sequence::State::kWaiting;
  sequence->refused_epoch = sequence->asked_epoch;
  sequence->blocks_missing = is_short ? reply.blocks_needed - reply.blocks_available : 0;
}

void Scheduler::on_kv_window(const KvWindow& reply) {
  Sequence* sequence = find(reply.sequence);
  // Trimmed meanwhile: that has given the blocks back.
  if (sequence == nullptr || sequence->state != Sequence::State::kRunning) return;
  // No row sees what lies between: it was given up at the same time.
  TROUPE_ASSERT(reply.first_index >= sequence->window.size(), reply.sequence, reply.first_index,
                sequence->window.size());
  TROUPE_ASSERT(reply.first_index + reply.blocks.size() <= sequence->blocks.size(), reply.sequence,
                reply.first_index, reply.blocks.size());
  sequence->window.resize(reply.first_index, kNoBlock);
  sequence->window.insert(sequence->window.end(), reply.blocks.begin(), reply.blocks.end());
}

void Scheduler::on_kv_extended(const KvExtended& reply) {
  if (reply.number <= extends_answered_) return;  // repeated, or from before fail_all()
  TROUPE_ASSERT(reply.number <= extends_sent_, reply.number, extends_sent_);
  extends_answered_ = reply.number;
  for (const KvExtended::Grant& grant : reply.grants) {
    Sequence* sequence = find(grant.sequence);
    // Trimmed meanwhile: the trim that followed the extend has given the blocks back.
    if (sequence == nullptr || sequence->state != Sequence::State::kRunning) continue;
    sequence->extend_asked = 0;
    sequence->refused_epoch.reset();
    if (grant.blocks.empty()) continue;
    TROUPE_ASSERT(grant.first_index == sequence->blocks.size(), grant.sequence, grant.first_index,
                  sequence->blocks.size());
    sequence->blocks.insert(sequence->blocks.end(), grant.blocks.begin(), grant.blocks.end());
  }
  for (const KvExtended::Refusal& refusal : reply.refusals) {
    Sequence* sequence = find(refusal.sequence);
    if (sequence == nullptr || sequence->state != Sequence::State::kRunning) continue;
    TROUPE_ASSERT(refusal.blocks_missing > 0, refusal.sequence);
    sequence->extend_asked = 0;
    sequence->refused_epoch = sequence->asked_epoch;
    sequence->blocks_missing = refusal.blocks_missing;
  }
}

void Scheduler::on_step_result(StepResult result) {
  if (step_in_flight_ != result.number) return;  // repeated, or from before fail_all()
  step_in_flight_.reset();
  const std::vector<SliceInFlight> planned = std::exchange(slices_in_flight_, {});
  TROUPE_ASSERT(result.slices.size() == planned.size(), result.slices.size(), planned.size());
  learn_costs(planned, result);
  ++stats_.steps;
  KvCommit commit;
  std::vector<Sequence*> leaving;
  actions_.emissions.reserve(planned.size());
  for (size_t i = 0; i < planned.size(); ++i) {
    Sequence* sequence = find(planned[i].sequence);
    TROUPE_ASSERT(sequence != nullptr, planned[i].sequence);
    // A prompt computed for others stays until they have it.
    const bool kept = sequence->spec.prefill_only && result.slices[i].status.ok();
    accept_slice(planned[i], std::move(result.slices[i]), *sequence, commit);
    if (sequence->cancelled || (sequence->ended && !kept)) leaving.push_back(sequence);
  }
  // First the commits, so that what leaves stays as cache.
  if (!commit.items.empty()) actions_.kv.emplace_back(std::move(commit));
  for (Sequence* sequence : leaving) release_and_forget(*sequence);
}

void Scheduler::accept_slice(const SliceInFlight& planned, SliceResult&& slice, Sequence& sequence,
                             KvCommit& commit) {
  TROUPE_ASSERT(slice.sequence == planned.sequence, slice.sequence, planned.sequence);
  const size_t sampled = slice.sampled.size();
  TROUPE_ASSERT(!slice.status.ok() || (sampled >= (planned.sample ? 1U : 0U) &&
                                       sampled <= (planned.sample ? planned.guesses + 1U : 0U)),
                slice.sequence, sampled, planned.guesses);
  TROUPE_ASSERT(sequence.in_flight == planned.tokens, slice.sequence, sequence.in_flight);
  sequence.computed += std::exchange(sequence.in_flight, 0);
  sequence.sample_in_flight = false;
  TROUPE_ASSERT(sequence.computed <= sequence.known(), slice.sequence, sequence.computed);
  if (!slice.status.ok()) {
    // What it computed is not worth keeping: nothing of it is committed.
    if (!sequence.cancelled) emission_of(sequence).failed = std::move(slice.status);
    sequence.ended = true;
    return;
  }
  if (sequence.cancelled) return add_commit(sequence, commit);
  if (!slice.prompt_scores.empty()) accept_scores(sequence, std::move(slice.prompt_scores));
  if (!slice.pooled.empty()) {
    TROUPE_ASSERT(sequence.computed > sequence.pooled_rows, sequence.spec.id, sequence.computed);
    sequence.pooled = std::move(slice.pooled);
    sequence.pooled_rows = sequence.computed;
  }
  if (sampled > 0) accept_tokens(planned, std::move(slice), sequence);
  add_commit(sequence, commit);
  if (sampled > 0) return;
  if (sequence.spec.params->max_tokens == 0 && sequence.computed == sequence.known())
    finish_prompt_only(sequence);
}

void Scheduler::finish_prompt_only(Sequence& sequence) {
  TROUPE_ASSERT(!sequence.scoring(), sequence.spec.id, sequence.scores);
  stats_.prompt_tokens += sequence.prompt_tokens();
  const Pooling pooling = sequence.spec.params->pooling;
  if (pooling != Pooling::kNone) {
    TROUPE_ASSERT(sequence.pooled_rows == sequence.prompt_tokens(), sequence.spec.id,
                  sequence.pooled_rows);
    const double rows = pooling == Pooling::kMean ? sequence.prompt_tokens() : 1.0;
    std::vector<float>& embedding = emission_of(sequence).embedding;
    for (const double sum : sequence.pooled) embedding.push_back(static_cast<float>(sum / rows));
  }
  end(sequence, FinishReason::kLength, -1);
}

// Those that came before a preemption were not asked for again.
void Scheduler::accept_scores(Sequence& sequence, std::vector<SampledToken>&& scores) {
  std::vector<SampledToken>& out = emission_of(sequence).prompt_scores;
  for (SampledToken& score : scores) out.push_back(std::move(score));
  sequence.scores += static_cast<uint32_t>(scores.size());
  TROUPE_ASSERT(sequence.scores < sequence.prompt_tokens(), sequence.spec.id, sequence.scores);
}

// All but the last one are guesses, so their KV stands; that of wrong guesses is overwritten.
void Scheduler::accept_tokens(const SliceInFlight& planned, SliceResult&& slice,
                              Sequence& sequence) {
  std::vector<SampledToken>& sampled = slice.sampled;
  if (planned.guesses > 0) {
    const auto right = static_cast<uint32_t>(sampled.size()) - 1;
    sequence.pace.on_result(planned.guesses, right);
    ++stats_.drafts;
    stats_.guessed_tokens += planned.guesses;
    stats_.right_tokens += right;
  }
  for (size_t i = 0; i < sampled.size() && !sequence.ended; ++i) {
    // What was guessed past the end is of no interest.
    const bool ends = slice.grammar_ended && i + 1 == sampled.size();
    accept_token(sequence, std::move(sampled[i]), ends);
  }
  sequence.computed = sequence.known() - 1;
}

// From steps in which everyone decodes: a chunk of a prompt costs otherwise.
void Scheduler::learn_costs(const std::vector<SliceInFlight>& planned, const StepResult& result) {
  const Duration took = result.finished - result.started;
  uint32_t rows = 0;
  bool only_decodes = true;
  for (const SliceInFlight& slice : planned) {
    rows += slice.tokens + slice.guesses;
    only_decodes = only_decodes && slice.sample && slice.tokens == 1;
  }
  pace_.on_step(rows, took);
  if (only_decodes) row_cost_.on_step(rows, std::chrono::duration<double>(took).count());
}

// `grammar_ended`: the token ends the answer, whatever the parameters say.
void Scheduler::accept_token(Sequence& sequence, SampledToken&& sampled, bool grammar_ended) {
  const SamplingParams& params = *sequence.spec.params;
  TROUPE_ASSERT(!sequence.scoring(), sequence.spec.id, sequence.scores);
  if (sequence.output.empty()) stats_.prompt_tokens += sequence.prompt_tokens();
  const TokenId token = sampled.token;
  sequence.output.push_back(token);
  ++stats_.generated_tokens;
  emission_of(sequence).tokens.push_back(std::move(sampled));
  const size_t outputs = sequence.output.size();
  const bool is_stop = (!params.ignore_eos && contains(options_.end_tokens, token)) ||
                       contains(params.stop_token_ids, token);
  if (grammar_ended || (is_stop && outputs > params.min_tokens))
    end(sequence, FinishReason::kStop, token);
  else if (outputs >= params.max_tokens || sequence.known() >= options_.context_tokens)
    end(sequence, FinishReason::kLength, -1);
}

void Scheduler::add_commit(Sequence& sequence, KvCommit& commit) {
  const uint32_t full = sequence.computed / kBlockTokens;
  if (full == sequence.committed_blocks && !sequence.commit_due) return;
  KvCommit::Item item{.sequence = sequence.spec.id,
                      .computed = sequence.computed,
                      .first_position = sequence.reported,
                      .tokens = {}};
  for (; sequence.reported < sequence.computed; ++sequence.reported)
    item.tokens.push_back(sequence.token(sequence.reported));
  sequence.committed_blocks = full;
  // Letting go of the copy's source may make it evictable.
  if (std::exchange(sequence.commit_due, false)) ++give_back_epoch_;
  if (sequence.window_settles_at && sequence.computed >= *sequence.window_settles_at) {
    sequence.window_settles_at.reset();
    ++give_back_epoch_;
  }
  commit.items.push_back(std::move(item));
}

uint32_t Scheduler::import_end(const Sequence& sequence) {
  const uint32_t most = sequence.prompt_tokens() - 1;  // the last one is computed, for its logits
  const uint32_t there = sequence.spec.import_tokens_max;
  return there == 0 ? most : std::min(there, most);
}

// Only for the first reserve: what a preempted sequence lost is computed here.
uint32_t Scheduler::import_below(const Sequence& sequence) {
  const uint32_t least = sequence.spec.import_tokens_min;
  const uint32_t most = sequence.prompt_tokens() - 1;
  if (least == 0 || sequence.cached_tokens || most < least) return 0;
  // What is to be had there goes beyond the block that this worker has begun.
  const auto blocks = static_cast<uint32_t>(blocks_for(import_end(sequence)));
  return std::min(most - least + 1, blocks * kBlockTokens);
}

void Scheduler::start_import(Sequence& sequence) {
  const uint32_t tokens = import_end(sequence);
  const uint32_t first = sequence.computed / kBlockTokens;
  // A block that is imported need not be filled by copy.
  if (std::exchange(sequence.copy, std::nullopt)) sequence.commit_due = true;
  sequence.computed = first * kBlockTokens;
  sequence.importing = true;
  sequence.imported_first_block = first;
  ++stats_.importing;
  Import import{.sequence = sequence.spec.id,
                .first_block = first,
                .blocks = {},
                .tokens = tokens,
                .window_blocks = {}};
  const auto end = static_cast<ptrdiff_t>(blocks_for(tokens));
  import.blocks.assign(sequence.blocks.begin() + first, sequence.blocks.begin() + end);
  sequence.imported_blocks = static_cast<uint32_t>(import.blocks.size());
  if (windowed()) {
    const uint32_t seen = std::max(first, first_kept_block(tokens, options_.window));
    TROUPE_ASSERT(
        sequence.window_first <= seen && std::cmp_greater_equal(sequence.window.size(), end),
        sequence.spec.id, sequence.window_first, sequence.window.size());
    import.window_first = seen - first;
    import.window_blocks.assign(sequence.window.begin() + seen, sequence.window.begin() + end);
  }
  actions_.kv.emplace_back(KvLease{.sequence = sequence.spec.id, .first_block = first});
  actions_.imports.push_back(std::move(import));
}

void Scheduler::on_import_ended(SequenceId id, uint32_t blocks, uint32_t cached_tokens) {
  Sequence* sequence = find(id);
  if (sequence == nullptr || !sequence->importing) return;
  sequence->importing = false;
  TROUPE_ASSERT(stats_.importing > 0, id);
  --stats_.importing;
  TROUPE_ASSERT(blocks <= sequence->imported_blocks, id, blocks, sequence->imported_blocks);
  const uint32_t end = (sequence->imported_first_block + blocks) * kBlockTokens;
  sequence->computed = std::min(end, import_end(*sequence));
  TROUPE_ASSERT(sequence->cached_tokens.has_value(), id);
  sequence->cached_tokens =
      std::max(*sequence->cached_tokens, std::min(cached_tokens, sequence->computed));
  actions_.kv.emplace_back(KvEndLease{.sequence = id});
  KvCommit commit;
  add_commit(*sequence, commit);
  if (!commit.items.empty()) actions_.kv.emplace_back(std::move(commit));
  if (sequence->cancelled) return release_and_forget(*sequence);
  // What comes of the windowed layers is of use for the end of the import alone.
  if (windowed() && first_seen_block(sequence->computed, options_.window) < sequence->window_first)
    give_back(*sequence, 0);
}

void Scheduler::fail_all(const Status& status) {
  TROUPE_ASSERT(!status.ok(), status.message());
  step_in_flight_.reset();
  slices_in_flight_.clear();
  extends_answered_ = extends_sent_;
  std::vector<Sequence*> all;
  for (ByRank* home : {&running_, &waiting_})
    for (const auto& [rank, sequence] : *home) all.push_back(sequence);
  for (Sequence* sequence : all) {
    sequence->in_flight = 0;
    if (!sequence->cancelled && !sequence->ended) emission_of(*sequence).failed = status;
    sequence->cancelled = true;
    if (!sequence->importing) release_and_forget(*sequence);
  }
  TROUPE_ASSERT(sequences_.size() == stats_.importing, sequences_.size(), stats_.importing);
}

bool Scheduler::idle() const {
  return sequences_.empty() && !step_in_flight_;
}

uint64_t Scheduler::queued_tokens() const {
  uint64_t tokens = 0;
  for (const auto& [id, sequence] : sequences_) {
    const bool resting = sequence->importing || sequence->cancelled || sequence->ended;
    if (!resting) tokens += sequence->known() - sequence->computed;
  }
  return tokens;
}

SchedulerStats Scheduler::stats() const {
  SchedulerStats stats = stats_;
  stats.running = static_cast<uint32_t>(running_.size());
  stats.waiting = static_cast<uint32_t>(waiting_.size());
  return stats;
}

void Scheduler::check_invariants() const {
  TROUPE_ASSERT(sequences_.size() == waiting_.size() + running_.size(), sequences_.size());
  TROUPE_ASSERT(step_in_flight_.has_value() == !slices_in_flight_.empty(),
                slices_in_flight_.size());
  uint32_t reserving = 0;
  uint32_t importing = 0;
  size_t in_flight = 0;
  for (const auto& [id, sequence] : sequences_) {
    const bool is_running = sequence->state == Sequence::State::kRunning;
    const ByRank& home = is_running ? running_ : waiting_;
    TROUPE_ASSERT(home.contains(sequence->rank) && home.at(sequence->rank) == sequence.get(), id);
    if (sequence->state == Sequence::State::kReserving) ++reserving;
    if (sequence->in_flight > 0) ++in_flight;
    TROUPE_ASSERT(is_running || sequence->in_flight == 0, id, sequence->in_flight);
    TROUPE_ASSERT(!sequence->ended || sequence->spec.prefill_only, id);
    TROUPE_ASSERT(!sequence->importing || (is_running && sequence->in_flight == 0), id);
    if (sequence->importing) ++importing;
    TROUPE_ASSERT(sequence->computed + sequence->in_flight <= sequence->known(), id);
    if (is_running)
      TROUPE_ASSERT(sequence->computed + sequence->in_flight <= sequence->capacity(), id);
    TROUPE_ASSERT(sequence->known() < options_.context_tokens + 1, id, sequence->known());
  }
  TROUPE_ASSERT(reserving == reserves_outstanding_, reserving, reserves_outstanding_);
  TROUPE_ASSERT(importing == stats_.importing, importing, stats_.importing);
  TROUPE_ASSERT(in_flight == slices_in_flight_.size(), in_flight, slices_in_flight_.size());
  TROUPE_ASSERT(running_.size() + reserving <= options_.running_max, running_.size(), reserving);
}

}  // namespace troupe
