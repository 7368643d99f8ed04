// What one turn of the scheduler decides: who gives back blocks, who asks for some, and the step.

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "engine/kv/window.h"
#include "engine/schedule/scheduled_sequence.h"
#include "engine/schedule/scheduler.h"

namespace troupe {
namespace {

uint32_t blocks_for(uint32_t tokens) {
  return (tokens + kBlockTokens - 1) / kBlockTokens;
}

}  // namespace

Actions Scheduler::take_actions() {
  // Blocks change hands only while no step reads them. Trims go out before what asks for the
  // blocks, extends of those who run before reserves of those who wait.
  if (!step_in_flight_) {
    relieve_stalls();
    plan_step();
  }
  ask_extends();
  ask_reserves();
  return std::exchange(actions_, {});
}

// Precondition: no step in flight. Frees blocks for the most urgent sequence that cannot go on
// without, at the cost of the least urgent one. One victim a turn; what it gave up is asked for at
// once, and if that was not enough (shared blocks do not become free) the refusal leads back here.
void Scheduler::relieve_stalls() {
  for (const auto& [rank, sequence] : running_) {
    if (sequence->computed < sequence->granted()) continue;
    if (sequence->refused_epoch != give_back_epoch_) continue;
    if (Sequence* victim = find_victim(rank)) return preempt(*victim, sequence->blocks_missing);
  }
  if (!is_stuck()) return;
  // Everyone waits for blocks that somebody keeps: the most urgent one gets them.
  for (const auto& [rank, sequence] : waiting_) {
    if (sequence->refused_epoch != give_back_epoch_) continue;
    const bool needs_window = sequence->blocks_missing == 0;
    if (Sequence* victim = find_victim(rank, needs_window))
      preempt(*victim, sequence->blocks_missing);
    return;
  }
}

bool Scheduler::is_stuck() const {
  if (reserves_outstanding_ > 0 || extends_answered_ < extends_sent_) return false;
  return std::none_of(running_.begin(), running_.end(), [](const auto& entry) {
    return entry.second->computed < entry.second->granted();
  });
}

// The least urgent sequence that holds blocks, is less urgent than `above`, and is not waiting for
// an answer; or null. So the most urgent sequence of all never loses anything. Windowed blocks are
// held by those who run.
Scheduler::Sequence* Scheduler::find_victim(const Rank& above, bool holds_window) {
  Sequence* victim = nullptr;
  for (const ByRank* home : {&running_, &waiting_}) {
    if (holds_window && home == &waiting_) break;
    for (auto entry = home->rbegin(); entry != home->rend() && entry->first > above; ++entry) {
      Sequence* candidate = entry->second;
      if (candidate->blocks.empty() || candidate->state == Sequence::State::kReserving) continue;
      // Others read or write their blocks.
      if (candidate->spec.prefill_only || candidate->importing) continue;
      if (victim == nullptr || candidate->rank > victim->rank) victim = candidate;
      break;
    }
  }
  return victim;
}

void Scheduler::preempt(Sequence& victim, uint32_t blocks_missing) {
  TROUPE_ASSERT(victim.in_flight == 0, victim.spec.id, victim.in_flight);
  const auto held = static_cast<uint32_t>(victim.blocks.size());
  const uint32_t kept = held > blocks_missing ? held - blocks_missing : 0;
  // Blocks that are not full are of no use later, so all of them go.
  const uint32_t keep = std::min(kept, victim.computed / kBlockTokens);
  if (victim.state == Sequence::State::kRunning) {
    ++victim.preemptions;
    ++stats_.preemptions;
  }
  give_back(victim, keep);
}

// All but the first `keep` blocks; it waits to be admitted again.
void Scheduler::give_back(Sequence& sequence, uint32_t keep) {
  actions_.kv.emplace_back(KvTrim{.sequence = sequence.spec.id, .keep_blocks = keep});
  ++give_back_epoch_;
  sequence.blocks.resize(keep);
  sequence.window.clear();
  sequence.computed = keep * kBlockTokens;
  sequence.copy.reset();
  sequence.commit_due = false;
  sequence.extend_asked = 0;
  sequence.refused_epoch.reset();
  if (sequence.state == Sequence::State::kWaiting) return;
  sequence.state = Sequence::State::kWaiting;
  running_.erase(sequence.rank);
  waiting_.emplace(sequence.rank, &sequence);
}

void Scheduler::ask_extends() {
  KvExtend extend;
  for (const auto& [rank, sequence] : running_) {
    if (sequence->cancelled || sequence->importing || sequence->ended) continue;
    const uint32_t known = sequence->known() + (sequence->sample_in_flight ? 1 : 0);
    // Everything known when it was admitted has its place already.
    if (sequence->computed + sequence->in_flight + 1 < known) continue;
    const uint32_t most = kv_tokens_max(sequence->spec);
    const uint32_t blocks = blocks_for(std::min(known + extend_ahead() - 1, most));
    if (blocks <= sequence->blocks.size() || blocks <= sequence->extend_asked) continue;
    if (sequence->refused_epoch == give_back_epoch_) continue;
    sequence->extend_asked = blocks;
    sequence->asked_epoch = give_back_epoch_;
    extend.items.push_back({.sequence = sequence->spec.id, .blocks = blocks});
  }
  if (extend.items.empty()) return;
  extend.number = ++extends_sent_;
  actions_.kv.emplace_back(std::move(extend));
}

void Scheduler::ask_reserves() {
  uint32_t refused = 0;
  for (const auto& [rank, sequence] : waiting_) {
    if (running_.size() + reserves_outstanding_ >= options_.running_max) return;
    if (sequence->refused_epoch && ++refused > kRefusedLookPastMax) return;
    if (sequence->state == Sequence::State::kReserving) continue;
    if (sequence->refused_epoch == give_back_epoch_) {
      // Nothing was given back since. Others may pass, but not for ever, and not one that lost its
      // place already.
      if (sequence->preempted() || sequence->passes >= options_.passes_max) return;
      continue;
    }
    send_reserve(*sequence);
  }
}

void Scheduler::send_reserve(Sequence& sequence) {
  KvReserve reserve;
  reserve.sequence = sequence.spec.id;
  reserve.attempt = ++sequence.attempt;
  reserve.tokens = sequence.spec.prompt;
  reserve.cache_salt = sequence.spec.cache_salt;
  reserve.cover_tokens = sequence.known();
  if (!sequence.output.empty()) {
    auto tokens = std::make_shared<std::vector<TokenId>>(*sequence.spec.prompt);
    tokens->insert(tokens->end(), sequence.output.begin(), sequence.output.end());
    reserve.tokens = std::move(tokens);
  }
  if (const auto from = sequence.rows_needed_from()) reserve.reuse_tokens_max = *from;
  // Not for those who are asking, too: they may be refused, and that is no reason to ask again.
  const size_t spare = std::min<size_t>(running_.size(), kSpareBlocksMax);
  reserve.spare_blocks = static_cast<uint32_t>(spare);
  reserve.import_below = import_below(sequence);
  reserve.import_tokens = import_end(sequence);
  if (windowed()) {
    const uint32_t steps = std::max(options_.step_tokens_max, extend_ahead());
    reserve.window_blocks =
        std::min(window_needed(sequence.spec, steps), options_.window_blocks_total);
    reserve.window_blocks_later = window_needed(sequence.spec, extend_ahead());
  }
  sequence.state = Sequence::State::kReserving;
  sequence.asked_epoch = give_back_epoch_;
  ++reserves_outstanding_;
  actions_.kv.emplace_back(std::move(reserve));
}

void Scheduler::plan_step() {
  StepPlan plan;
  plan.slices.reserve(running_.size());
  uint32_t budget = options_.step_tokens_max;
  plan_decoding(budget, plan);
  plan_prompts(budget, plan);
  if (plan.slices.empty()) return;
  plan.number = next_step_++;
  step_in_flight_ = plan.number;
  actions_.step = std::move(plan);
}

// Tokens of it that a step could compute now, beside those of the step that is being planned.
uint32_t Scheduler::computable(const Sequence& sequence) {
  if (sequence.in_flight > 0 || sequence.importing || sequence.cancelled) return 0;
  const uint32_t end = std::min(sequence.known(), sequence.capacity());
  return end - std::min(end, sequence.computed);
}

void Scheduler::plan_prompts(uint32_t& budget, StepPlan& plan) {
  StepPace::Queue queue;
  for (const auto& [rank, sequence] : running_) {
    const uint32_t tokens = computable(*sequence);
    queue.tokens += tokens;
    queue.prompts += tokens > 0 ? 1 : 0;
  }
  if (queue.prompts == 0) return;
  budget = std::min(budget, pace_.prompt_tokens(options_.step_tokens_max - budget, queue));
  for (const auto& [rank, sequence] : running_) {
    if (budget == 0) break;
    const uint32_t tokens = std::min(computable(*sequence), budget);
    if (tokens == 0) continue;
    add_slice(*sequence, tokens, {}, plan);
    budget -= tokens;
  }
}

// Rows that were pooled before a preemption are not pooled again.
void Scheduler::add_pooling(const Sequence& sequence, uint32_t end, StepSlice& slice) {
  const bool is_whole = end == sequence.prompt_tokens();
  if (sequence.averages() && end > sequence.pooled_rows) {
    TROUPE_ASSERT(slice.position <= sequence.pooled_rows, slice.sequence, slice.position,
                  sequence.pooled_rows);
    slice.pooling = {.first = sequence.pooled_rows - slice.position, .sums = sequence.pooled};
  } else if (sequence.spec.params->pooling == Pooling::kLast && is_whole) {
    slice.pooling = {.first = static_cast<uint32_t>(slice.tokens.size()) - 1, .sums = {}};
  }
}

// Those who decode come first: one token each, and a client is reading along. What is left of the
// budget then may be spent on guesses.
void Scheduler::plan_decoding(uint32_t& budget, StepPlan& plan) {
  std::vector<Sequence*> decoding;
  for (const auto& [rank, sequence] : running_) {
    if (decoding.size() == budget) break;
    if (sequence->importing || sequence->cancelled) continue;
    if (sequence->known() - sequence->computed != 1) continue;
    if (sequence->computed >= sequence->capacity()) continue;  // misses this step
    decoding.push_back(sequence);
  }
  const auto rows = static_cast<uint32_t>(decoding.size());
  budget -= rows;
  for (Sequence* sequence : decoding) {
    const std::vector<TokenId> guesses = guess(*sequence, rows, budget);
    budget -= static_cast<uint32_t>(guesses.size());
    add_slice(*sequence, 1, guesses, plan);
  }
}

// For a sequence among `rows` that decode. A row costs all of them time, and a right guess saves
// one of them a step.
std::vector<TokenId> Scheduler::guess(Sequence& sequence, uint32_t rows, uint32_t budget) {
  if (options_.guesses_max == 0 || sequence.output.empty()) return {};
  const double cost = row_cost_.of(rows) * rows;
  if (cost >= 1.0) return {};
  // Each guess leaves room for the token that is sampled after it.
  const uint32_t room = std::min(kv_tokens_max(sequence.spec), sequence.capacity());
  TROUPE_ASSERT(room > sequence.computed, sequence.spec.id, room, sequence.computed);
  const uint32_t most = std::min({options_.guesses_max, budget, room - sequence.computed - 1});
  if (most == 0) return {};
  NgramDrafter& drafter = sequence.drafter;
  while (drafter.size() < sequence.known()) {
    drafter.append(sequence.token(static_cast<uint32_t>(drafter.size())));
  }
  if (!drafter.has_draft()) return {};
  return drafter.draft(std::min(most, sequence.pace.next_length(cost)));
}

void Scheduler::add_slice(Sequence& sequence, uint32_t tokens, const std::vector<TokenId>& guesses,
                          StepPlan& plan) {
  const uint32_t begin = sequence.computed;
  const uint32_t end = begin + tokens;
  TROUPE_ASSERT(tokens > 0 && end <= sequence.known(), sequence.spec.id, begin, end);
  TROUPE_ASSERT(end <= sequence.capacity(), sequence.spec.id, end, sequence.capacity());
  const SamplingParams& params = *sequence.spec.params;
  const uint32_t prompt = sequence.prompt_tokens();
  StepSlice& slice = plan.slices.emplace_back();
  slice.sequence = sequence.spec.id;
  slice.position = begin;
  slice.tokens.reserve(tokens);
  for (uint32_t i = begin; i < end; ++i) slice.tokens.push_back(sequence.token(i));
  slice.tokens.insert(slice.tokens.end(), guesses.begin(), guesses.end());
  slice.guesses = static_cast<uint32_t>(guesses.size());
  const uint32_t covered = end + slice.guesses;
  TROUPE_ASSERT(covered <= sequence.capacity(), sequence.spec.id, covered, sequence.capacity());
  slice.blocks.assign(sequence.blocks.begin(), sequence.blocks.begin() + blocks_for(covered));
  if (sequence.is_windowed) {
    slice.window_first = first_kept_block(begin, options_.window);
    TROUPE_ASSERT(slice.window_first >= sequence.window_first, slice.sequence, begin,
                  sequence.window_first);
    slice.window_blocks.assign(sequence.window.begin() + slice.window_first,
                               sequence.window.begin() + blocks_for(covered));
  }
  slice.sample = end == sequence.known() && params.max_tokens > 0;
  slice.prompt_tokens = prompt;
  slice.output_tokens = static_cast<uint32_t>(sequence.output.size());
  slice.params = sequence.spec.params;
  if (slice.sample) slice.grammar = sequence.spec.grammar;
  if (slice.sample && needs_history(params)) {
    slice.history.reserve(sequence.known());
    slice.history.assign(sequence.spec.prompt->begin(), sequence.spec.prompt->end());
    slice.history.insert(slice.history.end(), sequence.output.begin(), sequence.output.end());
  }
  slice.score_prompt = sequence.scoring() && end > sequence.scores;
  if (slice.score_prompt) slice.score_first = std::max(sequence.scores, begin) - begin;
  if (slice.score_prompt && end < prompt) slice.next_token = sequence.token(end);
  add_pooling(sequence, end, slice);
  if (sequence.copy) {
    TROUPE_ASSERT(sequence.copy->to == sequence.blocks[begin / kBlockTokens], sequence.spec.id);
    plan.copies.push_back(*std::exchange(sequence.copy, std::nullopt));
    sequence.commit_due = true;
  }
  sequence.in_flight = tokens;
  sequence.sample_in_flight = slice.sample;
  slices_in_flight_.push_back({.sequence = slice.sequence,
                               .tokens = tokens,
                               .guesses = slice.guesses,
                               .sample = slice.sample});
}

}  // namespace troupe
