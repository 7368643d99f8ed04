#include "apps/node/loaded_model.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "apps/node/described_model.h"
#include "apps/node/isa_choice.h"
#include "base/os/entropy.h"
#include "base/os/memory.h"
#include "base/os/numa.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/backend/reference/reference_backend.h"
#include "engine/model/model_digest.h"
#include "engine/tokenizer/gguf_tokenizer.h"

namespace troupe {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kDefaultKvBytesMax = 4096 * kMiB;
constexpr uint64_t kDefaultKvShare = 4;  // one part in four of the available memory

std::string mib(uint64_t bytes) {
  return std::to_string((bytes + kMiB - 1) / kMiB) + " MiB";
}

// A line that rewrites itself on a terminal; elsewhere nothing until the end.
LoadProgress progress_line() {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  return [terminal](uint64_t done, uint64_t total) {
    if (!terminal) return;
    std::cerr << "\rloading " << done * 100 / std::max<uint64_t>(total, 1) << " % of " << mib(total)
              << (done == total ? "\n" : "") << std::flush;
  };
}

}  // namespace

Result<std::unique_ptr<LoadedModel>> LoadedModel::load(const EngineOptions& options,
                                                       const Clock& clock) {
  if (options.numa_node >= 0)
    TROUPE_RETURN_IF_ERROR(stay_on_numa_node(static_cast<uint32_t>(options.numa_node)));
  std::unique_ptr<LoadedModel> loaded(new LoadedModel());
  TROUPE_ASSIGN_OR_RETURN(loaded->kv_type_, kv_type_of(options.kv_cache_dtype, options.backend));
  TROUPE_RETURN_IF_ERROR(loaded->open(options));
  TROUPE_RETURN_IF_ERROR(loaded->upload(options, clock));
  TROUPE_RETURN_IF_ERROR(loaded->size_pool(options));
  TROUPE_RETURN_IF_ERROR(loaded->make_executor(options, clock));
  loaded->digest_ = loaded->pending_digest_.get();
  // What the digest has read after the upload was through with it.
  loaded->file_->release_pages(loaded->file_->bytes());
  return loaded;
}

Status LoadedModel::open(const EngineOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(file_, GgufFile::open(options.model_path));
  pending_digest_ =
      std::async(std::launch::async, [file = file_.get()] { return model_digest(*file); });
  TROUPE_ASSIGN_OR_RETURN(description_, read_model(*file_));
  TROUPE_ASSIGN_OR_RETURN(const TokenizerSpec spec, tokenizer_spec_of(*file_));
  TROUPE_ASSIGN_OR_RETURN(tokenizer_, Tokenizer::create(spec));
  if (tokenizer_->vocab_size() != description_->config.vocab) {
    return {StatusCode::kDataLoss,
            options.model_path + ": the tokenizer has " + std::to_string(tokenizer_->vocab_size()) +
                " tokens, the embedding table " + std::to_string(description_->config.vocab) +
                "; they must agree: get the file anew"};
  }
  return ok_status();
}

Status LoadedModel::upload(const EngineOptions& options, const Clock& clock) {
  TROUPE_ASSIGN_OR_RETURN(const CpuIsa isa, choose_isa(options.cpu_features, clock));
  const uint32_t threads = choose_threads(options.threads);
  const uint64_t weights = estimate_memory(*file_, description_->config, kv_type_).weight_bytes;
  if (const auto available = available_memory_bytes();
      available.ok() && weights > available.value()) {
    return {StatusCode::kResourceExhausted,
            options.model_path + " needs " + mib(weights) + " for its weights, but only " +
                mib(available.value()) +
                " of memory are available; free some or take a smaller model"};
  }
  if (options.backend == "reference") {
    backend_ = std::make_unique<ReferenceBackend>(threads, isa);
  } else {
    backend_ = std::make_unique<CpuBackend>(CpuBackendOptions{threads, isa});
  }
  TROUPE_ASSIGN_OR_RETURN(model_,
                          DecoderModel::load(*file_, *description_, *backend_, progress_line()));
  return file_->check_unchanged();
}

Result<uint64_t> LoadedModel::memory_for_pools(const EngineOptions& options) {
  if (options.kv_memory_mib != 0) return options.kv_memory_mib * kMiB;
  TROUPE_ASSIGN_OR_RETURN(const uint64_t available, available_memory_bytes());
  return std::min(available / kDefaultKvShare, kDefaultKvBytesMax) /
         std::max(1U, options.kv_memory_parts);
}

Status LoadedModel::size_pool(const EngineOptions& options) {
  TROUPE_RETURN_IF_ERROR(choose_context(options));
  const ModelConfig& config = description_->config;
  const uint64_t layer = Executor::layer_block_bytes(config, kv_type_);
  const uint64_t block = config.layers * layer;
  const uint32_t windowed = config.windowed_layers();
  const KvPoolNeeds needs{.block_bytes = (config.layers - windowed) * layer,
                          .window_block_bytes = windowed * layer,
                          .window = config.window,
                          .context_tokens = context_tokens_,
                          .step_tokens_max = options.step_tokens_max,
                          .window_blocks = options.kv_window_blocks};
  // A model of windowed layers alone has no others to keep blocks for.
  const bool is_apart = windowed > 0 && windowed < config.layers;
  uint64_t bytes = 0;
  if (options.kv_blocks != 0) {
    pools_.blocks = std::min(options.kv_blocks, UINT32_MAX / kBlockTokens);
    if (is_apart) pools_.window_blocks = window_blocks_for(pools_.blocks, needs);
  } else {
    TROUPE_ASSIGN_OR_RETURN(bytes, memory_for_pools(options));
    if (is_apart)
      pools_ = kv_pool_sizes(bytes, needs);
    else
      pools_.blocks =
          static_cast<uint32_t>(std::min<uint64_t>(bytes / block, UINT32_MAX / kBlockTokens));
  }
  if (pools_.blocks == 0) {
    return {StatusCode::kResourceExhausted, "the KV pool of " + mib(bytes) +
                                                " holds not even one block of " + mib(block) +
                                                "; raise --kv-memory or free memory"};
  }
  pool_bytes_ =
      is_apart ? pools_.blocks * needs.block_bytes + pools_.window_blocks * needs.window_block_bytes
               : pools_.blocks * block;
  const auto available = available_memory_bytes();
  if (available.ok() && pool_bytes_ > available.value()) {
    return {StatusCode::kResourceExhausted,
            "the KV pool would take " + mib(pool_bytes_) + ", but only " + mib(available.value()) +
                " of memory are available; lower --kv-memory or --kv-blocks"};
  }
  context_tokens_ = std::min(context_tokens_, pools_.blocks * kBlockTokens);
  return ok_status();
}

Status LoadedModel::choose_context(const EngineOptions& options) {
  context_tokens_ = description_->config.context_length;
  if (options.context_tokens > context_tokens_) {
    return invalid_argument("--context-length " + std::to_string(options.context_tokens) +
                            " exceeds the model's " + std::to_string(context_tokens_));
  }
  if (options.context_tokens != 0) context_tokens_ = options.context_tokens;
  return ok_status();
}

Status LoadedModel::make_executor(const EngineOptions& options, const Clock& clock) {
  ExecutorLimits limits;
  limits.step_tokens_max = options.step_tokens_max;
  limits.kv_blocks = pools_.blocks;
  limits.kv_window_blocks = pools_.window_blocks;
  limits.kv_type = kv_type_;
  TROUPE_ASSIGN_OR_RETURN(
      executor_, Executor::make(*backend_, *model_, tokenizer_->end_tokens(), clock, limits));
  hasher_ = std::make_unique<Xxh3BlockHasher>(entropy_u64());
  KvCacheManagerOptions manager;
  manager.blocks = pools_.blocks;
  manager.window = description_->config.window;
  manager.window_blocks = pools_.window_blocks;
  kv_cache_manager_ = std::make_unique<KvCacheManagerCore>(manager, *hasher_);
  return ok_status();
}

std::string LoadedModel::name() const {
  return std::filesystem::path(file_->name()).stem().string();
}

SchedulerOptions LoadedModel::scheduler_options(const EngineOptions& options) const {
  SchedulerOptions scheduler;
  scheduler.blocks_total = pools_.blocks;
  scheduler.window = description_->config.window;
  scheduler.window_blocks_total = pools_.window_blocks;
  scheduler.context_tokens = context_tokens_;
  scheduler.end_tokens = tokenizer_->end_tokens();
  scheduler.step_tokens_max = options.step_tokens_max;
  scheduler.step_time = std::chrono::milliseconds(options.step_time_ms);
  scheduler.running_max = options.running_max;
  scheduler.guesses_max = guesses_max(options);
  return scheduler;
}

void LoadedModel::describe_kv(ServingMetrics& metrics) const {
  metrics.describe_kv(kBlockTokens, pools_.blocks, to_string(kv_type_));
}

WorkerKv LoadedModel::kv_memory() const {
  const ModelConfig& config = description_->config;
  const auto pool = [this](KvHandle kv, uint32_t layers, uint32_t blocks) {
    const KvLayout layout = backend_->kv_layout(kv);
    return KvMemory{
        backend_->kv_memory(kv), layers, blocks, layout.block_stride, layout.layer_stride,
        layout.block_bytes};
  };
  const DecoderKv& kv = executor_->kv();
  TROUPE_ASSERT(backend_->kv_layout(kv.all).type == kv_type_, to_string(kv_type_));
  if (pools_.window_blocks == 0)
    return {.all = pool(kv.all, config.layers, pools_.blocks), .windowed = {}, .is_windowed = {}};
  const uint32_t windowed = config.windowed_layers();
  WorkerKv memory{.all = pool(kv.all, config.layers - windowed, pools_.blocks),
                  .windowed = pool(kv.windowed, windowed, pools_.window_blocks),
                  .window = config.window,
                  .is_windowed = {}};
  for (uint32_t l = 0; l < config.layers; ++l) memory.is_windowed.push_back(config.windowed(l));
  return memory;
}

KvExtent LoadedModel::kv_extent() const {
  const WorkerKv kv = kv_memory();
  return {kv.all.layers, kv.all.block_bytes, digest_, kv.windowed.layers, kv.window, kv_type_};
}

Result<std::shared_ptr<const GrammarVocabulary>> LoadedModel::make_grammar_vocabulary() const {
  return make_xgrammar_vocabulary(*tokenizer_, description_->config.vocab);
}

std::string LoadedModel::summary() const {
  std::ostringstream out;
  out << description_->config.architecture << " model of " << description_->config.layers
      << " layers on " << backend_->description() << "; weights " << mib(backend_->weight_bytes())
      << ", KV pool " << pools_.blocks << " blocks of " << kBlockTokens << " tokens";
  if (pools_.window_blocks > 0) {
    out << " and " << pools_.window_blocks << " for the " << description_->config.windowed_layers()
        << " windowed layers, which see " << description_->config.window << " tokens";
  }
  out << " (" << to_string(kv_type_) << ", " << mib(pool_bytes_) << "), context " << context_tokens_
      << " tokens";
  return out.str();
}

}  // namespace troupe
