#include "engine/model/executor.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "base/assert.h"
#include "engine/kv/window.h"

namespace troupe {
namespace {

uint64_t host_rows_bytes(const ModelConfig& config, const ExecutorLimits& limits) {
  const uint64_t widest = std::max<uint64_t>(config.vocab, config.width);
  return limits.logits_rows_max * widest * sizeof(float);
}

bool is_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](double value) { return std::isfinite(value); });
}

}  // namespace

Executor::Executor(Backend& backend, const DecoderModel& model,
                   const std::vector<TokenId>& end_tokens, const Clock& clock,
                   const ExecutorLimits& limits)
    : backend_(backend), model_(model), clock_(clock), limits_(limits) {
  const uint32_t samplers = std::min(backend.host_workers(), kSamplersMax);
  for (uint32_t i = 0; i < samplers; ++i)
    samplers_.push_back(std::make_unique<RowSampler>(model.config().vocab, end_tokens, clock));
}

Result<std::unique_ptr<Executor>> Executor::make(Backend& backend, const DecoderModel& model,
                                                 const std::vector<TokenId>& end_tokens,
                                                 const Clock& clock, const ExecutorLimits& limits) {
  TROUPE_ASSERT(limits.step_tokens_max > 0 && limits.kv_blocks > 0 && limits.logits_rows_max > 0,
                limits.step_tokens_max, limits.kv_blocks, limits.logits_rows_max);
  std::unique_ptr<Executor> executor(new Executor(backend, model, end_tokens, clock, limits));
  TROUPE_RETURN_IF_ERROR(executor->allocate());
  return executor;
}

Status Executor::allocate() {
  const ModelConfig& config = model_.config();
  TROUPE_ASSIGN_OR_RETURN(
      activations_, model_.make_activations(limits_.step_tokens_max, limits_.logits_rows_max));
  TROUPE_ASSIGN_OR_RETURN(
      host_rows_, backend_.allocate(host_rows_bytes(config, limits_), MemoryKind::kHostPinned));
  TROUPE_RETURN_IF_ERROR(allocate_kv());
  tokens_.reserve(limits_.step_tokens_max);
  return ok_status();
}

Status Executor::allocate_kv() {
  const ModelConfig& config = model_.config();
  const bool is_apart = limits_.kv_window_blocks > 0;
  TROUPE_ASSERT(!is_apart || config.windowed_layers() > 0, limits_.kv_window_blocks);
  KvShape shape{.layers = config.layers,
                .kv_heads = config.kv_heads,
                .head_dim = config.head_size,
                .blocks = limits_.kv_blocks,
                .type = limits_.kv_type};
  if (is_apart) shape.layers -= config.windowed_layers();
  TROUPE_ASSIGN_OR_RETURN(kv_.all, backend_.allocate_kv(shape));
  if (!is_apart) return ok_status();
  shape.layers = config.windowed_layers();
  shape.blocks = limits_.kv_window_blocks;
  shape.windowed = true;
  TROUPE_ASSIGN_OR_RETURN(kv_.windowed, backend_.allocate_kv(shape));
  return ok_status();
}

Executor::~Executor() {
  for (const KvHandle kv : {kv_.all, kv_.windowed})
    if (kv.value != 0) backend_.release(backend_.kv_layout(kv).buffer);
  if (host_rows_.value != 0) backend_.release(host_rows_);
  model_.release(activations_);
}

uint64_t Executor::workspace_bytes(const ModelConfig& config, const ExecutorLimits& limits) {
  return DecoderModel::activation_bytes(config, limits.step_tokens_max, limits.logits_rows_max) +
         host_rows_bytes(config, limits);
}

Result<StepResult> Executor::execute(const StepPlan& plan) {
  size_t total = 0;
  for (const StepSlice& slice : plan.slices) total += slice.tokens.size();
  if (total > limits_.step_tokens_max)
    return invalid_argument("step " + std::to_string(plan.number) + " has " +
                            std::to_string(total) + " tokens, the executor takes at most " +
                            std::to_string(limits_.step_tokens_max) + ": plan smaller chunks");
  check_plan(plan);

  StepResult result;
  result.number = plan.number;
  result.started = clock_.now();
  result.slices.resize(plan.slices.size());
  for (size_t s = 0; s < plan.slices.size(); ++s)
    result.slices[s].sequence = plan.slices[s].sequence;

  for (const StepPlan::BlockCopy& copy : plan.copies) {
    backend_.copy_block(kv_.all, copy.from, copy.to);
    if (kv_.windowed.value != 0)
      backend_.copy_block(kv_.windowed, copy.window_from, copy.window_to);
  }
  collect_rows(plan);
  if (total > 0) TROUPE_RETURN_IF_ERROR(forward(plan));
  for (size_t first = 0; first < wanted_.size(); first += limits_.logits_rows_max) {
    const size_t count = std::min<size_t>(limits_.logits_rows_max, wanted_.size() - first);
    TROUPE_RETURN_IF_ERROR(finish_group(plan, first, count, result));
  }
  TROUPE_RETURN_IF_ERROR(pool(plan, result));
  // Also when no logits are wanted: `finished` is the device's, and a failed device is told of now.
  TROUPE_RETURN_IF_ERROR(backend_.wait(backend_.record_event(), limits_.step_patience));
  result.finished = clock_.now();
  return result;
}

Status Executor::forward(const StepPlan& plan) {
  const Batch batch{.tokens = tokens_, .slices = slices_};
  if (plan.exports.empty()) {
    model_.forward(batch, kv_, activations_);
    return ok_status();
  }
  TROUPE_ASSERT(layer_listener_ != nullptr, plan.number);
  Status failed;
  model_.forward(batch, kv_, activations_, [&](uint32_t layer) {
    if (failed.ok()) failed = backend_.wait(backend_.record_event(), limits_.step_patience);
    if (failed.ok()) layer_listener_->on_layer_stored(plan, layer);
  });
  return failed;
}

void Executor::check_plan(const StepPlan& plan) const {
  for (const StepPlan::BlockCopy& copy : plan.copies) check_copy(copy);
  TROUPE_ASSERT(plan.exports.empty() || !plan.slices.empty(), plan.number);
  std::set<BlockIndex> written, windows_written;
  for (const StepSlice& slice : plan.slices) {
    check_slice(slice);
    const size_t first = slice.position / kBlockTokens;
    const size_t last = (slice.position + slice.tokens.size() - 1) / kBlockTokens;
    for (size_t b = first; b <= last; ++b) {
      TROUPE_ASSERT(written.insert(slice.blocks[b]).second, slice.sequence, slice.blocks[b]);
      if (kv_.windowed.value == 0) continue;
      const BlockIndex block = slice.window_blocks[b - slice.window_first];
      TROUPE_ASSERT(windows_written.insert(block).second, slice.sequence, block);
    }
  }
}

void Executor::check_copy(const StepPlan::BlockCopy& copy) const {
  const auto check = [](BlockIndex from, BlockIndex to, uint32_t blocks) {
    TROUPE_ASSERT(from.value < blocks && to.value < blocks && from != to, from, to, blocks);
  };
  check(copy.from, copy.to, limits_.kv_blocks);
  if (kv_.windowed.value != 0) check(copy.window_from, copy.window_to, limits_.kv_window_blocks);
}

// They reach from what the first row sees, or before it, to the last block.
void Executor::check_window_blocks(const StepSlice& slice) const {
  const uint32_t seen = first_seen_block(slice.position, model_.config().window);
  TROUPE_ASSERT(slice.window_first <= seen &&
                    slice.window_first + slice.window_blocks.size() == slice.blocks.size(),
                slice.sequence, slice.position, slice.window_first, slice.window_blocks.size());
  for (BlockIndex block : slice.window_blocks)
    TROUPE_ASSERT(block.value < limits_.kv_window_blocks, slice.sequence, block);
}

void Executor::check_slice(const StepSlice& slice) const {
  TROUPE_ASSERT(!slice.tokens.empty(), slice.sequence);
  TROUPE_ASSERT(slice.position + slice.tokens.size() <= slice.blocks.size() * kBlockTokens,
                slice.sequence, slice.position, slice.tokens.size(), slice.blocks.size());
  TROUPE_ASSERT(slice.params != nullptr || !(slice.sample || slice.score_prompt), slice.sequence);
  TROUPE_ASSERT(slice.guesses < slice.tokens.size() && (slice.sample || slice.guesses == 0),
                slice.sequence, slice.guesses, slice.tokens.size());
  if (slice.pooling) {
    const size_t sums = slice.pooling->sums.size();
    TROUPE_ASSERT(slice.pooling->first < slice.tokens.size(), slice.sequence, slice.pooling->first);
    TROUPE_ASSERT(sums == 0 || sums == model_.config().width, slice.sequence, sums);
  }
  const auto vocab = static_cast<TokenId>(model_.config().vocab);
  for (TokenId token : slice.tokens)
    TROUPE_ASSERT(token >= 0 && token < vocab, slice.sequence, token, vocab);
  TROUPE_ASSERT(slice.next_token < vocab, slice.sequence, slice.next_token, vocab);
  for (BlockIndex block : slice.blocks)
    TROUPE_ASSERT(block.value < limits_.kv_blocks, slice.sequence, block, limits_.kv_blocks);
  if (kv_.windowed.value != 0) check_window_blocks(slice);
}

void Executor::collect_rows(const StepPlan& plan) {
  tokens_.clear();
  slices_.clear();
  wanted_.clear();
  pooled_.clear();
  for (uint32_t s = 0; s < plan.slices.size(); ++s) {
    const StepSlice& slice = plan.slices[s];
    const auto first = static_cast<uint32_t>(tokens_.size());
    const auto rows = static_cast<uint32_t>(slice.tokens.size());
    slices_.push_back(
        {first, rows, slice.position, slice.blocks, slice.window_first, slice.window_blocks});
    tokens_.insert(tokens_.end(), slice.tokens.begin(), slice.tokens.end());
    for (uint32_t r = 0; r < rows; ++r) {
      const TokenId next = r + 1 == rows ? slice.next_token : slice.tokens[r + 1];
      const RowSampler::Row use{.index = r,
                                .sample = slice.sample && r + slice.guesses + 1 >= rows,
                                .score = slice.score_prompt && r >= slice.score_first ? next : -1};
      if (use.sample || use.score >= 0) wanted_.push_back({first + r, s, use});
      if (slice.pooling && r >= slice.pooling->first) pooled_.push_back({first + r, s});
    }
  }
}

Status Executor::finish_group(const StepPlan& plan, size_t first, size_t count,
                              StepResult& result) {
  std::vector<uint32_t> rows(count);
  for (size_t i = 0; i < count; ++i) rows[i] = wanted_[first + i].row;
  const size_t vocab = model_.config().vocab;
  model_.logits(rows, activations_);
  backend_.copy(host_rows_, 0, activations_.logits, 0, count * vocab * sizeof(float));
  TROUPE_RETURN_IF_ERROR(backend_.wait(backend_.record_event(), limits_.step_patience));
  const auto* logits = reinterpret_cast<const float*>(backend_.host_bytes(host_rows_).data());
  // Slices are apart from each other; the rows of one follow each other.
  runs_.clear();
  for (size_t i = 0; i < count; ++i) {
    if (i == 0 || wanted_[first + i].slice != wanted_[first + i - 1].slice) runs_.push_back(i);
  }
  const auto runs = static_cast<uint32_t>(runs_.size());
  backend_.run_on_host(runs, kSamplersMax, [&](uint32_t run, uint32_t worker) {
    const size_t end = run + 1 < runs ? runs_[run + 1] : count;
    for (size_t i = runs_[run]; i < end; ++i) {
      const LogitsRow& wanted = wanted_[first + i];
      samplers_[worker]->use(plan.slices[wanted.slice], wanted.use, {logits + i * vocab, vocab},
                             result.slices[wanted.slice]);
    }
  });
  return ok_status();
}

Status Executor::pool(const StepPlan& plan, StepResult& result) {
  for (size_t s = 0; s < plan.slices.size(); ++s)
    if (plan.slices[s].pooling) result.slices[s].pooled = plan.slices[s].pooling->sums;
  for (size_t first = 0; first < pooled_.size(); first += limits_.logits_rows_max) {
    const size_t count = std::min<size_t>(limits_.logits_rows_max, pooled_.size() - first);
    TROUPE_RETURN_IF_ERROR(pool_group(first, count, result));
  }
  for (SliceResult& slice : result.slices) {
    if (is_finite(slice.pooled)) continue;
    slice.status = {StatusCode::kInternal,
                    "the model gave a hidden state that is not a number; check the model file"};
  }
  return ok_status();
}

Status Executor::pool_group(size_t first, size_t count, StepResult& result) {
  std::vector<uint32_t> rows(count);
  for (size_t i = 0; i < count; ++i) rows[i] = pooled_[first + i].row;
  const size_t width = model_.config().width;
  model_.final_rows(rows, activations_);
  backend_.copy(host_rows_, 0, activations_.last, 0, count * width * sizeof(float));
  TROUPE_RETURN_IF_ERROR(backend_.wait(backend_.record_event(), limits_.step_patience));
  const auto* values = reinterpret_cast<const float*>(backend_.host_bytes(host_rows_).data());
  for (size_t i = 0; i < count; ++i) {
    std::vector<double>& sums = result.slices[pooled_[first + i].slice].pooled;
    sums.resize(width);
    for (size_t k = 0; k < width; ++k) sums[k] += static_cast<double>(values[i * width + k]);
  }
  return ok_status();
}

}  // namespace troupe
