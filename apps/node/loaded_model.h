#pragma once
// A model file made ready to serve: mapped, checked, tokenizer and chat template built, weights on
// the device, KV pool allocated.

#include <cstddef>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "actors/kv_cache_manager/kv_cache_manager_core.h"
#include "actors/worker/export_orders.h"
#include "actors/worker/kv_memory.h"
#include "apps/node/engine_options.h"
#include "apps/node/kv_pool_sizes.h"
#include "base/clock.h"
#include "base/metrics/serving_metrics.h"
#include "engine/backend/backend.h"
#include "engine/grammar/grammar_compiler.h"
#include "engine/kv/block_hash.h"
#include "engine/model/executor.h"
#include "engine/model/gguf_file.h"
#include "engine/model/model_config.h"
#include "engine/schedule/scheduler.h"
#include "engine/tokenizer/tokenizer.h"

namespace troupe {

class LoadedModel final {
 public:
  // Shows its progress on standard error. `clock` must outlive the result.
  [[nodiscard]] static Result<std::unique_ptr<LoadedModel>> load(const EngineOptions& options,
                                                                 const Clock& clock);
  LoadedModel(const LoadedModel&) = delete;
  LoadedModel& operator=(const LoadedModel&) = delete;

  [[nodiscard]] const Tokenizer& tokenizer() const { return *tokenizer_; }
  // The file, e.g. for what only some programs read of it.
  [[nodiscard]] const GgufFile& file() const { return *file_; }
  [[nodiscard]] Executor& executor() { return *executor_; }
  [[nodiscard]] KvCacheManagerCore& kv_cache_manager() { return *kv_cache_manager_; }
  // For who plans its steps: with its pools of KV blocks, its context and its end tokens.
  [[nodiscard]] SchedulerOptions scheduler_options(const EngineOptions& options) const;
  // Once, before the metrics are first collected.
  void describe_kv(ServingMetrics& metrics) const;
  // Of a sequence, prompt and output: the model's or, where smaller, what was asked for or fits the
  // pool.
  [[nodiscard]] uint32_t context_tokens() const { return context_tokens_; }
  [[nodiscard]] uint32_t embedding_width() const { return description_->config.width; }
  // Names the file's content (engine/model/model_digest.h).
  [[nodiscard]] const std::string& digest() const { return digest_; }
  // The file up to its tensors' data.
  [[nodiscard]] std::span<const std::byte> header() const { return file_->header(); }
  // Of the file, without folder and ending.
  [[nodiscard]] std::string name() const;
  // The pools' memory, as transfers see it, to be registered; and what it is like.
  [[nodiscard]] WorkerKv kv_memory() const;
  [[nodiscard]] KvExtent kv_extent() const;
  // For spawn_decode(); called with this object alive.
  [[nodiscard]] Result<std::shared_ptr<const GrammarVocabulary>> make_grammar_vocabulary() const;
  // One line for the log: model, device, memory.
  [[nodiscard]] std::string summary() const;

 private:
  LoadedModel() = default;
  [[nodiscard]] Status open(const EngineOptions& options);
  [[nodiscard]] Status upload(const EngineOptions& options, const Clock& clock);
  [[nodiscard]] Status size_pool(const EngineOptions& options);
  [[nodiscard]] Status choose_context(const EngineOptions& options);
  [[nodiscard]] static Result<uint64_t> memory_for_pools(const EngineOptions& options);
  [[nodiscard]] Status make_executor(const EngineOptions& options, const Clock& clock);

  KvType kv_type_ = KvType::kF16;
  // In the order of their dependence: destruction runs backwards.
  std::unique_ptr<GgufFile> file_;
  // Computed beside the upload, which reads the same pages.
  std::future<std::string> pending_digest_;
  std::string digest_;
  std::optional<ModelDescription> description_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<DecoderModel> model_;
  KvPoolSizes pools_;  // window_blocks is 0 where all layers share one
  uint64_t pool_bytes_ = 0;
  uint32_t context_tokens_ = 0;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<BlockHasher> hasher_;
  std::unique_ptr<KvCacheManagerCore> kv_cache_manager_;
};

}  // namespace troupe
