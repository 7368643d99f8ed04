#pragma once
// Continuous batching: decides what each step computes. A pure state machine: no thread, no clock,
// no randomness; the decode actor feeds it events and sends what take_actions() returns.
//
//   add/cancel/on_...   any number of events
//   take_actions()      what follows from them: KV messages, at most one step, emissions
//
// One token budget per step, no phases: first the sequences that decode (one token each), then
// chunks of what is still to be computed of others, in order of urgency, as many tokens as keep the
// step to its time. One step is in flight at a
// time. Without events there is nothing to do: take_actions() is never needed as a poll.
//
// Out of blocks: a sequence that cannot go on takes tail blocks from the least urgent one that
// holds any; that one later computes again what it lost (its prompt and output so far), with the
// same result. The most urgent sequence is never a victim, so it always ends.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "engine/finish_reason.h"
#include "engine/kv/kv_messages.h"
#include "engine/sample/sampling_params.h"
#include "engine/schedule/draft/draft_pace.h"
#include "engine/schedule/limits.h"
#include "engine/schedule/step_pace.h"
#include "engine/step.h"
#include "troupe/status.h"

namespace troupe {

struct SchedulerOptions {
  uint32_t blocks_total = 0;  // of the worker's pool
  // Tokens that a row of the windowed layers sees, and the pool of their own blocks; 0 where they
  // have none.
  uint32_t window = 0;
  uint32_t window_blocks_total = 0;
  uint32_t context_tokens = 0;      // the model's: prompt + output never exceed it
  std::vector<TokenId> end_tokens;  // the model's; they end a sequence unless ignore_eos
  uint32_t step_tokens_max = kStepTokensDefault;
  // What a step should take while it computes prompts, by their chunks' size; zero: no matter.
  Duration step_time{};
  uint32_t running_max = kRunningSequencesMax;
  uint32_t waiting_max = kWaitingSequencesMax;
  uint32_t passes_max = kPassesMax;
  // Urgency is min(deadline, arrival + ageing), fixed at arrival, smaller first; ties in order of
  // arrival. Since a newcomer's deadline is not before its arrival, one that waited `ageing` is
  // ahead of every newcomer. Without deadlines this is first come, first served.
  Duration ageing = std::chrono::seconds(30);
  // Guess what decoding sequences go on with, and let a step check the guesses: the same tokens in
  // fewer steps. As many as pay, see draft/draft_pace.h; 0: none.
  uint32_t guesses_max = kDraftTokensMax;
};

struct SequenceSpec {
  SequenceId id;
  RequestId request;
  std::shared_ptr<const std::vector<TokenId>> prompt;  // never null or empty
  std::shared_ptr<const SamplingParams> params;        // never null
  std::shared_ptr<GrammarMatcher> grammar;             // of its output; null: free text
  std::string cache_salt;
  TimePoint arrival{};
  std::optional<TimePoint> deadline;
  // When at least this many prompt tokens are not cached, their KV is imported instead of computed,
  // all but the last token's: see Import. 0: never. Not together with prompt scores or the mean of
  // the prompt's rows, which need every token's computed here.
  uint32_t import_tokens_min = 0;
  uint32_t import_tokens_max = 0;  // of the prompt, to have from there; 0: all but the last
  // KV of the whole prompt is computed and nothing sampled. The sequence ends with kLength when
  // that is done, but keeps its blocks, for those who read them, until it is cancelled.
  bool prefill_only = false;
};

// The reserved blocks of a sequence that wait to be filled from elsewhere, with KV of positions
// [16 first_block, tokens). The sequence rests until on_import_ended().
struct Import {
  SequenceId sequence;
  uint32_t first_block = 0;        // earlier ones are cached here
  std::vector<BlockIndex> blocks;  // of the sequence, from first_block on; the last may be partial
  uint32_t tokens = 0;             // of the prompt, at most all but its last
  // Where windowed layers have blocks of their own: those that are still seen behind `tokens`,
  // from the window_first-th of `blocks` on.
  uint32_t window_first = 0;
  std::vector<BlockIndex> window_blocks;
};

// What one sequence has to tell its client. At most one per sequence and take_actions().
struct Emission {
  struct End {
    FinishReason reason = FinishReason::kStop;
    TokenId stop_token = -1;  // the token that ended it, or -1
    uint32_t prompt_tokens = 0;
    uint32_t cached_tokens = 0;  // of the prompt, found in the prefix cache
    uint32_t preemptions = 0;
  };
  SequenceId sequence;
  RequestId request;
  std::vector<SampledToken> prompt_scores;  // of prompt tokens score_from, …: gapless, each once
  std::vector<SampledToken> tokens;         // new ones, the end or stop token included
  std::vector<float> embedding;             // the pooled prompt, with the end
  std::optional<End> end;                   // set exactly once in a sequence's life, unless …
  Status failed;                            // … it fails; nothing comes after either
};

struct Actions {
  std::vector<KvRequest> kv;  // send as one message; its order matters
  std::optional<StepPlan> step;
  std::vector<Import> imports;
  std::vector<Emission> emissions;
  [[nodiscard]] bool empty() const {
    return kv.empty() && !step && imports.empty() && emissions.empty();
  }
};

struct SchedulerStats {
  uint32_t running = 0;    // in the batch
  uint32_t waiting = 0;    // for blocks or a place in the batch
  uint32_t importing = 0;  // of those running
  uint64_t preemptions = 0;
  uint64_t prompt_tokens = 0;  // computed or reused, once per sequence
  uint64_t generated_tokens = 0;
  uint64_t steps = 0;
  uint64_t drafts = 0;          // guesses made for a step of a sequence, …
  uint64_t guessed_tokens = 0;  // … their tokens, …
  uint64_t right_tokens = 0;    // … and how many of these were right
};

class Scheduler {
 public:
  explicit Scheduler(SchedulerOptions options);
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  ~Scheduler();

  // kResourceExhausted: the queue is full. kContextLength: the prompt leaves no place in the
  // context, or prompt and output (max_tokens, cut at the context) do not fit the whole pool even
  // alone. kInvalidArgument: the id is in use, or nothing is asked. On an error the sequence is not
  // taken and nothing is emitted for it. An output that would pass the context's end is no error:
  // it ends there with kLength.
  Status add(SequenceSpec spec);
  // Nothing more is emitted for the sequence. Its blocks go back with the next actions, or, when a
  // step in flight or an import uses them, with those that follow its end. Harmless when unknown.
  void cancel(SequenceId sequence);

  void on_kv_reserved(const KvReserved& reply);
  void on_kv_refused(const KvRefused& reply);
  void on_kv_extended(const KvExtended& reply);
  void on_kv_window(const KvWindow& reply);
  void on_kv_reply(const KvReply& reply);  // dispatches to those above
  void on_step_result(StepResult result);
  // An Import is over: its first `blocks` blocks stand, nothing will be written to the others any
  // more; what is missing is computed here. So is all of it when windowed blocks are missing that
  // the rows behind these blocks see: then the sequence waits for admission again. `cached_tokens`:
  // of the prompt, that the other side did not have to compute either. Harmless when unknown.
  void on_import_ended(SequenceId sequence, uint32_t blocks, uint32_t cached_tokens);
  // The device or the KV-cache manager is gone: every sequence fails with `status`, blocks are
  // released (those of an import when it has ended), the step in flight is forgotten.
  void fail_all(const Status& status);

  [[nodiscard]] Actions take_actions();

  // No sequence is known and no step is in flight.
  [[nodiscard]] bool idle() const;
  [[nodiscard]] SchedulerStats stats() const;  // O(1)
  // Tokens known that are neither computed nor being imported. O(n).
  [[nodiscard]] uint64_t queued_tokens() const;
  void check_invariants() const;  // O(n); aborts on a broken one

 private:
  struct Sequence;
  // Smaller is more urgent; unique.
  using Rank = std::pair<TimePoint, uint64_t>;
  using ByRank = std::map<Rank, Sequence*>;
  struct SliceInFlight {
    SequenceId sequence;
    uint32_t tokens = 0;
    uint32_t guesses = 0;  // after them
    bool sample = false;
  };

  [[nodiscard]] Status check_size(const SequenceSpec& spec) const;
  [[nodiscard]] uint32_t kv_tokens_max(const SequenceSpec& spec) const;
  [[nodiscard]] bool windowed() const { return options_.window_blocks_total > 0; }
  // Windowed blocks that a sequence holds at most when a step computes so many tokens of it.
  [[nodiscard]] uint32_t window_needed(const SequenceSpec& spec, uint32_t step_tokens) const;
  [[nodiscard]] uint32_t extend_ahead() const;
  Sequence* find(SequenceId id);
  Emission& emission_of(Sequence& sequence);
  void drop_emission(SequenceId id);
  void end(Sequence& sequence, FinishReason reason, TokenId stop_token);
  void release_and_forget(Sequence& sequence);

  void accept_slice(const SliceInFlight& planned, SliceResult&& slice, Sequence& sequence,
                    KvCommit& commit);
  void accept_scores(Sequence& sequence, std::vector<SampledToken>&& scores);
  void accept_tokens(const SliceInFlight& planned, SliceResult&& slice, Sequence& sequence);
  void accept_token(Sequence& sequence, SampledToken&& token, bool grammar_ended);
  void learn_costs(const std::vector<SliceInFlight>& planned, const StepResult& result);
  void finish_prompt_only(Sequence& sequence);
  void add_commit(Sequence& sequence, KvCommit& commit);

  void relieve_stalls();
  [[nodiscard]] bool is_stuck() const;
  Sequence* find_victim(const Rank& above, bool holds_window = false);
  void preempt(Sequence& victim, uint32_t blocks_missing);
  void give_back(Sequence& sequence, uint32_t keep);
  void ask_extends();
  void ask_reserves();
  void send_reserve(Sequence& sequence);
  [[nodiscard]] static uint32_t import_end(const Sequence& sequence);
  // Of cached tokens; with fewer the rest is imported.
  [[nodiscard]] static uint32_t import_below(const Sequence& sequence);
  void start_import(Sequence& sequence);
  void plan_step();
  void plan_prompts(uint32_t& budget, StepPlan& plan);
  [[nodiscard]] static uint32_t computable(const Sequence& sequence);
  static void add_pooling(const Sequence& sequence, uint32_t end, StepSlice& slice);
  void plan_decoding(uint32_t& budget, StepPlan& plan);
  [[nodiscard]] std::vector<TokenId> guess(Sequence& sequence, uint32_t rows, uint32_t budget);
  void add_slice(Sequence& sequence, uint32_t tokens, const std::vector<TokenId>& guesses,
                 StepPlan& plan);

  const SchedulerOptions options_;
  std::unordered_map<SequenceId, std::unique_ptr<Sequence>> sequences_;
  ByRank waiting_;  // a reserve is to be sent or not answered yet
  ByRank running_;  // with blocks for all tokens known when they were admitted
  // At most one for now: what it computes counts as `in_flight` of its sequences until its result.
  std::optional<uint64_t> step_in_flight_;
  std::vector<SliceInFlight> slices_in_flight_;
  uint64_t next_order_ = 0;
  uint64_t next_step_ = 1;
  uint64_t give_back_epoch_ =
      1;  // grows whenever blocks are given back: earlier refusals are stale
  uint32_t reserves_outstanding_ = 0;
  uint64_t extends_sent_ = 0;      // numbers of the last one sent …
  uint64_t extends_answered_ = 0;  // … and of the last one answered or given up
  RowCost row_cost_;
  StepPace pace_;
  Actions actions_;
  SchedulerStats stats_;
};

}  // namespace troupe
