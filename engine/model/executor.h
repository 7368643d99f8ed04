#pragma once
// Executes the scheduler's plans: one forward pass per step, then the sampler on the rows that end
// a sequence. Owned by the device actor; everything it needs for the largest step is allocated when
// it is made.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "engine/backend/backend.h"
#include "engine/model/decoder_model.h"
#include "engine/model/layer_listener.h"
#include "engine/model/row_sampler.h"
#include "engine/step.h"
#include "troupe/status.h"

namespace troupe {

struct ExecutorLimits {
  uint32_t step_tokens_max = 512;  // rows of one forward pass
  uint32_t kv_blocks = 0;          // blocks of the pool; the caller sizes it from memory
  // Blocks of the layers with a window, where these have a pool of their own; 0: all layers share
  // one.
  uint32_t kv_window_blocks = 0;
  KvType kv_type = KvType::kF16;
  // Rows of logits held at once; more are processed in groups. Memory: 4 bytes x vocabulary x this,
  // on the device and again on the host.
  uint32_t logits_rows_max = 32;
  // How long one step may take before the device counts as stuck.
  Duration step_patience = std::chrono::minutes(5);
};

// One thread at a time.
class Executor {
 public:
  // The references must outlive the executor; `model` was loaded into `backend`. `end_tokens`:
  // those that end a sequence by the model's own rule (Tokenizer::end_tokens()).
  // kResourceExhausted: the activations or the KV pool do not fit; the message names the bytes.
  [[nodiscard]] static Result<std::unique_ptr<Executor>> make(
      Backend& backend, const DecoderModel& model, const std::vector<TokenId>& end_tokens,
      const Clock& clock, const ExecutorLimits& limits);
  ~Executor();

  // Runs the plan and returns one result per slice, in the plan's order. Blocks the calling thread.
  // A sequence whose logits the sampler refuses (NaN), or whose grammar fails or takes longer than
  // grammar_limits::kTokenPatience, gets that status in its own result.
  // kInvalidArgument: more tokens than step_tokens_max (nothing was executed). kDeadlineExceeded,
  // kInternal: the device failed; the executor is of no further use. A plan that contradicts itself
  // (blocks that do not cover the tokens, indices out of range, a token outside the vocabulary, a
  // block written twice) is a bug of the scheduler and ends the process.
  [[nodiscard]] Result<StepResult> execute(const StepPlan& plan);

  // Told of the layers of plans with exports; null: nobody, and then no plan may have any. It must
  // outlive the executor's use.
  void set_layer_listener(LayerListener* listener) { layer_listener_ = listener; }

  [[nodiscard]] const ExecutorLimits& limits() const { return limits_; }
  [[nodiscard]] const ModelConfig& config() const { return model_.config(); }
  [[nodiscard]] const DecoderKv& kv() const { return kv_; }
  // Bytes of one block over all layers: what a pool of n blocks costs n times of.
  [[nodiscard]] static uint64_t block_bytes(const ModelConfig& config, KvType type) {
    return config.layers * layer_block_bytes(config, type);
  }
  [[nodiscard]] static uint64_t layer_block_bytes(const ModelConfig& config, KvType type) {
    return kv_block_bytes(type, config.kv_heads, config.head_size);
  }
  // Bytes that activations and logits take for these limits, without the KV pool.
  [[nodiscard]] static uint64_t workspace_bytes(const ModelConfig& config,
                                                const ExecutorLimits& limits);

 private:
  // Each has some 20 bytes of scratch memory for each token of the vocabulary.
  static constexpr uint32_t kSamplersMax = 16;

  Executor(Backend& backend, const DecoderModel& model, const std::vector<TokenId>& end_tokens,
           const Clock& clock, const ExecutorLimits& limits);

  // A row of the pass whose logits are wanted, and for what.
  struct LogitsRow {
    uint32_t row = 0;
    uint32_t slice = 0;
    RowSampler::Row use;
  };

  // A row of the pass that belongs to a prompt's vector.
  struct PooledRow {
    uint32_t row = 0;
    uint32_t slice = 0;
  };

  [[nodiscard]] Status allocate();
  [[nodiscard]] Status allocate_kv();
  [[nodiscard]] Status forward(const StepPlan& plan);
  void check_plan(const StepPlan& plan) const;
  void check_copy(const StepPlan::BlockCopy& copy) const;
  void check_slice(const StepSlice& slice) const;
  void check_window_blocks(const StepSlice& slice) const;
  void collect_rows(const StepPlan& plan);
  // Logits of wanted_[first, first + count) to the host, then samples and scores from them.
  [[nodiscard]] Status finish_group(const StepPlan& plan, size_t first, size_t count,
                                    StepResult& result);
  [[nodiscard]] Status pool(const StepPlan& plan, StepResult& result);
  // Adds the rows of pooled_[first, first + count) to their slices' sums, in this order.
  [[nodiscard]] Status pool_group(size_t first, size_t count, StepResult& result);

  Backend& backend_;
  const DecoderModel& model_;
  const Clock& clock_;
  const ExecutorLimits limits_;
  LayerListener* layer_listener_ = nullptr;
  DecoderActivations activations_;
  DecoderKv kv_;
  BufferHandle host_rows_;  // of logits, or of the width of the model: logits_rows_max of either
  std::vector<TokenId> tokens_;
  std::vector<BatchSlice> slices_;
  std::vector<LogitsRow> wanted_;                      // by slice, then by position
  std::vector<std::unique_ptr<RowSampler>> samplers_;  // by host worker
  std::vector<size_t> runs_;       // where, in a group of wanted_, the rows of each slice begin
  std::vector<PooledRow> pooled_;  // by slice, then by position
};

}  // namespace troupe
