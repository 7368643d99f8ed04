#pragma once
// Scheduler, KV-cache manager and a fake device on one thread, with mailboxes between them that a
// seed empties in any order that real mailboxes allow. The fake device's next token is a hash over
// the contents of all KV that it reads, so a lost, stale, shared-and-overwritten or misplaced block
// changes the output; and it checks who owns what it reads and writes.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/kv_cache_manager/kv_cache_manager_core.h"
#include "engine/schedule/scheduler.h"

namespace troupe {

// SplitMix64: small, seeded, the same everywhere.
class TestRng {
 public:
  explicit TestRng(uint64_t seed) : state_(seed) {}
  uint64_t next();
  uint32_t below(uint32_t bound) { return static_cast<uint32_t>(next() % bound); }
  uint32_t between(uint32_t low, uint32_t high) { return low + below(high - low + 1); }
  bool chance(uint32_t percent) { return below(100) < percent; }

 private:
  uint64_t state_;
};

// A pretended model: what follows from a prefix.
namespace fake_model {
inline constexpr uint32_t kVocabulary = 40;
inline constexpr uint64_t kRepetitiveSeed = 2;
inline constexpr TokenId kEnd = 0;
// KV of one token from the sum over the KV before it that is seen: all of it, and, of a model with
// a window, once more what stands in its windowed layers, for the tokens in the window.
uint64_t kv(uint64_t sum_before, TokenId token, uint32_t position);
uint64_t weigh(uint64_t kv, uint32_t position);
uint64_t windowed(uint64_t kv);  // what stands in the windowed layers
TokenId next_token(uint64_t kv, const SamplingParams& params, uint32_t outputs);
SampledToken score(uint64_t kv, TokenId token);
double row(uint64_t kv);  // inexact, so that the order of additions shows

struct Generation {
  std::vector<TokenId> tokens;
  std::vector<SampledToken> prompt_scores;
  std::vector<float> embedding;
  FinishReason reason = FinishReason::kStop;
  TokenId stop_token = -1;
};
// The whole answer, computed alone and without blocks.
Generation reference(const std::vector<TokenId>& prompt, const SamplingParams& params,
                     uint32_t context, uint32_t window);
}  // namespace fake_model

class FakeDevice {
 public:
  // `window_pool` null: the model has no window.
  FakeDevice(const BlockPool& pool, const BlockPool* window_pool, uint32_t window,
             uint32_t step_tokens_max)
      : pool_(pool),
        window_pool_(window_pool),
        memory_(pool.total()),
        window_memory_(window_pool == nullptr ? 0 : window_pool->total()),
        window_(window),
        step_tokens_max_(step_tokens_max) {}
  StepResult execute(const StepPlan& plan);
  [[nodiscard]] uint64_t tokens_computed() const { return tokens_computed_; }
  [[nodiscard]] uint64_t copies() const { return copies_; }
  // Slices that began with windowed blocks behind them that nobody sees any more.
  [[nodiscard]] uint64_t passed_windows() const { return passed_windows_; }

 private:
  using Memory = std::vector<std::array<uint64_t, kBlockTokens>>;
  void copy(const StepPlan::BlockCopy& copy);
  void check_access(const StepSlice& slice) const;
  static void check_block(const BlockPool& pool, BlockIndex block, const StepSlice& slice,
                          bool is_written);
  SliceResult execute(const StepSlice& slice);
  const BlockPool& pool_;
  const BlockPool* const window_pool_;
  Memory memory_, window_memory_;
  const uint32_t window_;
  const uint32_t step_tokens_max_;
  uint64_t tokens_computed_ = 0;
  uint64_t copies_ = 0;
  uint64_t passed_windows_ = 0;
};

struct WorldOptions {
  uint32_t blocks = 64;
  uint32_t context_tokens = 2048;
  uint32_t copy_tokens_min = 1;
  uint32_t window = 0;  // with window_blocks > 0
  uint32_t window_blocks = 0;
  bool colliding_hashes = false;  // all identities fall into few values
  SchedulerOptions scheduler;     // blocks_total, context_tokens and end_tokens are filled in
};

// Every check is a BOOST_TEST_REQUIRE or an assertion of the product.
class ServingWorld {
 public:
  ServingWorld(WorldOptions options, uint64_t seed);

  struct Client {
    SequenceSpec spec;
    std::vector<TokenId> tokens;
    std::vector<SampledToken> prompt_scores;
    std::vector<float> embedding;
    std::optional<Emission::End> end;
    Status failed;
    bool cancelled = false;
    [[nodiscard]] bool over() const { return end || !failed.ok() || cancelled; }
  };

  Status add(std::vector<TokenId> prompt, SamplingParams params, std::string salt = {},
             std::optional<TimePoint> deadline = {});
  void cancel(SequenceId id);
  // Delivers one message of a mailbox chosen by the seed. False: all mailboxes are empty.
  bool deliver_one();
  // Until nothing is left to deliver; requires that everyone is served then.
  void run();
  // Everyone ended as the reference says (or was cancelled on the way there), nothing is held.
  void check_end();

  [[nodiscard]] Client& client(SequenceId id) { return clients_.at(id); }
  [[nodiscard]] std::map<SequenceId, Client>& clients() { return clients_; }
  [[nodiscard]] Scheduler& scheduler() { return scheduler_; }
  [[nodiscard]] KvCacheManagerCore& manager() { return manager_; }
  [[nodiscard]] FakeDevice& device() { return device_; }
  [[nodiscard]] TestRng& rng() { return rng_; }
  [[nodiscard]] SequenceId last_id() const { return SequenceId{next_id_ - 1}; }
  [[nodiscard]] const std::vector<uint32_t>& step_sizes() const { return step_sizes_; }
  void advance(Duration by) { now_ += by; }

 private:
  void act();
  void check_invariants() const;

  WorldOptions options_;
  TestRng rng_;
  std::unique_ptr<BlockHasher> hasher_;
  KvCacheManagerCore manager_;
  Scheduler scheduler_;
  FakeDevice device_;
  std::deque<std::vector<KvRequest>> to_manager_;
  std::deque<std::vector<KvReply>> from_manager_;
  std::deque<StepPlan> to_device_;
  std::deque<StepResult> from_device_;
  std::map<SequenceId, Client> clients_;
  std::vector<uint32_t> step_sizes_;
  TimePoint now_{};
  uint64_t next_id_ = 1;
};

}  // namespace troupe
