#pragma once
// What the scheduler knows of one sequence. Private to the scheduler's own files.

#include <algorithm>

#include "base/assert.h"
#include "engine/schedule/draft/draft_pace.h"
#include "engine/schedule/draft/ngram_drafter.h"
#include "engine/schedule/scheduler.h"

namespace troupe {

struct Scheduler::Sequence {
  enum class State {
    kWaiting,    // to be reserved for; may keep some blocks if it was preempted
    kReserving,  // the reserve is on its way or deferred
    kRunning,
  };

  SequenceSpec spec;
  Rank rank;
  State state = State::kWaiting;
  std::vector<TokenId> output;

  // KV of [0, computed) stands in `blocks`; [computed, computed + in_flight) is being computed.
  uint32_t computed = 0;
  uint32_t in_flight = 0;
  bool sample_in_flight = false;
  NgramDrafter drafter;  // holds prompt and output as soon as it is first asked
  DraftPace pace;
  std::vector<BlockIndex> blocks;
  // Where windowed layers have blocks of their own: those of `blocks`, as far as there are some;
  // entries before window_first, and those that no row to be computed sees, mean nothing.
  std::vector<BlockIndex> window;
  uint32_t window_first = 0;
  bool is_windowed = false;
  // Tokens known at its admission: when they are computed, it is promised fewer windowed blocks.
  std::optional<uint32_t> window_settles_at;
  std::optional<StepPlan::BlockCopy> copy;  // to be made in its next step
  bool commit_due = false;                  // the copy's source waits to be let go
  uint32_t reported = 0;                    // tokens that the KV-cache manager knows
  uint32_t committed_blocks = 0;

  uint32_t attempt = 0;                   // of its last reserve
  uint64_t asked_epoch = 0;               // when it last asked for blocks
  std::optional<uint64_t> refused_epoch;  // asked_epoch of its last refusal, until granted
  uint32_t blocks_missing = 0;            // at that refusal
  uint32_t extend_asked = 0;              // blocks in all that an extend on its way asks for, or 0
  uint32_t passes = 0;                    // later ones admitted since it was refused

  bool importing = false;  // a transfer fills its blocks
  uint32_t imported_blocks = 0;
  uint32_t imported_first_block = 0;

  uint32_t scores = 0;  // prompt tokens score_from … scores have been emitted with theirs
  // Sums over the rows of prompt tokens [0, pooled_rows), or the last token's row alone.
  std::vector<double> pooled;
  uint32_t pooled_rows = 0;
  std::optional<uint32_t> cached_tokens;  // at its first admission
  uint32_t preemptions = 0;
  bool cancelled = false;  // goes when its step is done
  bool ended = false;      // its end is emitted; goes within this turn, or, when prefill_only,
                           // when it is cancelled

  [[nodiscard]] uint32_t prompt_tokens() const {
    return static_cast<uint32_t>(spec.prompt->size());
  }
  [[nodiscard]] uint32_t known() const {
    return prompt_tokens() + static_cast<uint32_t>(output.size());
  }
  [[nodiscard]] TokenId token(uint32_t position) const {
    const uint32_t prompt = prompt_tokens();
    return position < prompt ? (*spec.prompt)[position] : output[position - prompt];
  }
  // Tokens that its blocks can hold …
  [[nodiscard]] uint32_t granted() const {
    return static_cast<uint32_t>(blocks.size()) * kBlockTokens;
  }
  // … and that those of both kinds can: the windowed ones follow by themselves.
  [[nodiscard]] uint32_t capacity() const {
    const size_t whole = is_windowed ? std::min(window.size(), blocks.size()) : blocks.size();
    return static_cast<uint32_t>(whole) * kBlockTokens;
  }
  // Some prompt token still lacks its score. Until then there is no output.
  [[nodiscard]] bool scoring() const {
    return spec.params->prompt_logprobs >= 0 && scores + 1 < prompt_tokens();
  }
  [[nodiscard]] bool averages() const { return spec.params->pooling == Pooling::kMean; }
  // Prompt tokens whose rows must be computed here although their KV may be cached begin there.
  [[nodiscard]] std::optional<uint32_t> rows_needed_from() const {
    // The logits that score token i + 1 are those of position i, so positions below `scores` are
    // done.
    if (scoring()) return scores;
    if (averages() && pooled_rows < prompt_tokens()) return pooled_rows;
    return std::nullopt;
  }
  [[nodiscard]] bool preempted() const { return state != State::kRunning && preemptions > 0; }
};

}  // namespace troupe
