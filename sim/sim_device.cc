#include "sim/sim_device.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "engine/kv/window.h"

namespace troupe::sim {

SimDevice::SimDevice(Process& process, const Options& options, const WorkerKv& kv,
                     const BlockPool& pool, const BlockPool* window_pool, LayerListener* listener,
                     Done done)
    : process_(process),
      options_(options),
      kv_(kv),
      pool_(pool),
      window_pool_(window_pool),
      listener_(listener),
      done_(std::move(done)) {
  TROUPE_ASSERT(kv.all.block_bytes == kSimBlockBytes && kv.layers() == options.model.layers);
}

void SimDevice::sabotage(StepPlan& plan) const {
  Saboteur& saboteur = process_.environment().saboteur;
  if (saboteur.strikes(Plant::kForeignBlock)) {
    BlockIndex& block = plan.slices.front().blocks.back();
    block = BlockIndex{(block.value + 1) % kv_.all.blocks};
  }
  if (window_pool_ != nullptr && saboteur.strikes(Plant::kForeignWindow)) {
    BlockIndex& block = plan.slices.front().window_blocks.front();
    block = BlockIndex{(block.value + 1) % kv_.windowed.blocks};
  }
}

void SimDevice::execute(StepPlan taken) {
  TROUPE_ASSERT(!std::exchange(executing_, true), taken.number);
  sabotage(taken);
  const auto plan = std::make_shared<const StepPlan>(std::move(taken));
  SeededRng& rng = process_.environment().rng;
  double factor = slowness_;
  if (options_.varies) factor *= 0.8 + 0.4 * rng.uniform();
  const auto duration = std::chrono::duration_cast<Duration>(options_.cost.of(*plan) * factor);
  const TimePoint started = process_.clock().now();
  busy_ += duration;
  ++steps_;
  size_t tokens = 0;
  for (const StepSlice& slice : plan->slices) {
    check_access(slice);
    tokens += slice.tokens.size();
  }
  tokens_ += tokens;
  if (tokens > options_.step_tokens_max) {
    process_.environment().log.violate(
        "queue", process_.node() + " computes " + std::to_string(tokens) + " tokens in a step");
  }
  if (!plan->exports.empty() && listener_ != nullptr) {
    for (uint32_t layer = 0; layer < kv_.layers(); ++layer) {
      process_.after(duration * (layer + 1) / (kv_.layers() + 1), [this, plan, layer] {
        store_layer(*plan, layer);
        listener_->on_layer_stored(*plan, layer);
      });
    }
  } else if (options_.varies && rng.chance(0.5)) {
    store_all_layers(*plan);
  } else {
    process_.after(duration, [this, plan] { store_all_layers(*plan); });
  }
  process_.after(duration, [this, plan, started] { finish(*plan, started); });
}

void SimDevice::store_all_layers(const StepPlan& plan) {
  for (uint32_t layer = 0; layer < kv_.layers(); ++layer) store_layer(plan, layer);
}

std::span<std::byte> SimDevice::bytes_of(uint32_t layer, BlockIndex block,
                                         BlockIndex window_block) const {
  return kv_.in_windowed(layer) ? kv_.windowed.at(kv_.place(layer), window_block)
                                : kv_.all.at(kv_.place(layer), block);
}

uint64_t& SimDevice::place(uint32_t layer, const StepSlice& slice, uint32_t position) const {
  const uint32_t index = position / kBlockTokens;
  BlockIndex window_block = kNoBlock;
  if (window_pool_ != nullptr && index >= slice.window_first)
    window_block = slice.window_blocks[index - slice.window_first];
  std::byte* block = bytes_of(layer, slice.blocks[index], window_block).data();
  return reinterpret_cast<uint64_t*>(block)[position % kBlockTokens];
}

void SimDevice::store_layer(const StepPlan& plan, uint32_t layer) {
  for (const StepPlan::BlockCopy& copy : plan.copies) {
    std::memcpy(bytes_of(layer, copy.to, copy.window_to).data(),
                bytes_of(layer, copy.from, copy.window_from).data(), kSimBlockBytes);
  }
  Saboteur& saboteur = process_.environment().saboteur;
  for (const StepSlice& slice : plan.slices) {
    uint64_t before = slice.position == 0 ? 0 : place(layer, slice, slice.position - 1);
    for (uint32_t i = 0; i < slice.tokens.size(); ++i) {
      before = SimModel::kv(layer, before, slice.tokens[i], slice.position + i);
      place(layer, slice, slice.position + i) = before;
    }
    if (saboteur.strikes(Plant::kWrongToken)) place(layer, slice, slice.position) ^= 1;
    if (saboteur.strikes(Plant::kLoseBlock)) {
      std::memset(&place(layer, slice, slice.position / kBlockTokens * kBlockTokens), 0,
                  kSimBlockBytes);
    }
  }
}

void SimDevice::finish(const StepPlan& plan, TimePoint started) {
  executing_ = false;
  if (failed_) {
    return process_.mail(Channel::kDeviceToCore, [this] {
      done_(Status(StatusCode::kInternal, "the modelled device has failed"));
    });
  }
  StepResult result;
  result.number = plan.number;
  result.slices.reserve(plan.slices.size());
  for (const StepSlice& slice : plan.slices) result.slices.push_back(read(slice));
  result.started = started;
  result.finished = process_.clock().now();
  if (process_.environment().saboteur.strikes(Plant::kDropStep)) return;
  const auto mailed = std::make_shared<StepResult>(std::move(result));
  process_.mail(Channel::kDeviceToCore, [this, mailed] { done_(std::move(*mailed)); });
}

SliceResult SimDevice::read(const StepSlice& slice) {
  SliceResult result;
  result.sequence = slice.sequence;
  if (!slice.sample && !slice.score_prompt && !slice.pooling) return result;
  if (slice.pooling) result.pooled = slice.pooling->sums;
  const auto end = static_cast<uint32_t>(slice.position + slice.tokens.size());
  const uint32_t window = kv_.window;
  // Tokens before this one are out of sight of windowed layers from the slice's first row on.
  const uint32_t hidden = window > 0 && slice.position >= window ? slice.position + 1 - window : 0;
  const auto read_at = [&](uint32_t position) {
    uint64_t sum = 0;
    for (uint32_t layer = 0; layer < kv_.layers(); ++layer) {
      const bool is_hidden = kv_.in_windowed(layer) && position < hidden;
      if (!is_hidden) sum += SimModel::weigh(place(layer, slice, position), layer, position);
    }
    return sum;
  };
  const auto read_leaving = [&](uint32_t position) {
    uint64_t sum = 0;
    for (uint32_t layer = 0; layer < kv_.layers(); ++layer) {
      if (kv_.in_windowed(layer))
        sum += SimModel::weigh(place(layer, slice, position), layer, position);
    }
    return sum;
  };
  const bool reads_all = options_.model.reads == Reads::kAll;
  uint64_t sum = 0;
  for (uint32_t i = reads_all ? 0 : slice.position; i < end; ++i) {
    sum = reads_all ? sum + read_at(i) : read_at(i);
    if (window > 0 && i >= window && i - window >= hidden) sum -= read_leaving(i - window);
    if (slice.pooling && i >= slice.position + slice.pooling->first) {
      result.pooled.resize(1);
      result.pooled[0] += SimModel::row(sum);
    }
    if (i >= slice.position && samples_after(slice, i - slice.position, result.sampled)) {
      const auto right = static_cast<uint32_t>(result.sampled.size());
      result.sampled.push_back(
          options_.model.sample(sum, *slice.params, slice.output_tokens + right));
    }
    if (!slice.score_prompt || i < slice.position + slice.score_first) continue;
    const uint32_t next = i + 1 - slice.position;
    const TokenId token = next < slice.tokens.size() ? slice.tokens[next] : slice.next_token;
    if (token >= 0) result.prompt_scores.push_back(options_.model.score(sum, token));
  }
  return result;
}

void SimDevice::violate(const StepSlice& slice, const std::string& what) const {
  process_.environment().log.violate(
      "owner",
      process_.node() + ", sequence " + std::to_string(slice.sequence.value) + ": " + what);
}

// Whoever reads or writes a block must be among its owners.
void SimDevice::check_access(const StepSlice& slice) const {
  const size_t end = slice.position + slice.tokens.size();
  if (slice.tokens.empty() || slice.blocks.size() != (end + kBlockTokens - 1) / kBlockTokens) {
    return violate(slice, "a slice's blocks do not fit its tokens");
  }
  const bool checks_all = options_.model.reads == Reads::kAll;
  for (size_t i = checks_all ? 0 : slice.position / kBlockTokens; i < slice.blocks.size(); ++i)
    check_block(slice, pool_, slice.blocks[i], (i + 1) * kBlockTokens > slice.position);
  if (window_pool_ != nullptr) check_window(slice);
}

void SimDevice::check_block(const StepSlice& slice, const BlockPool& pool, BlockIndex block,
                            bool is_written) const {
  const BlockState state = pool.state(block);
  // The news that a transfer has ended may still be on its way to the pool's owner.
  const bool has_owner = state == BlockState::kComputing || state == BlockState::kLeased;
  if (has_owner && pool.owner(block) == slice.sequence) return;
  if (state == BlockState::kHeld && !is_written) return;
  violate(slice, "block " + std::to_string(block.value) + " is " + to_string(state) +
                     (is_written ? ", to be written" : ", to be read"));
}

// The windowed blocks are those that the slice sees, and no others.
void SimDevice::check_window(const StepSlice& slice) const {
  const uint32_t seen = first_kept_block(slice.position, kv_.window);
  if (slice.window_first != seen ||
      slice.window_first + slice.window_blocks.size() != slice.blocks.size()) {
    return violate(slice, "a slice's windowed blocks do not fit its tokens");
  }
  for (size_t i = seen; i < slice.blocks.size(); ++i) {
    check_block(slice, *window_pool_, slice.window_blocks[i - seen],
                (i + 1) * kBlockTokens > slice.position);
  }
}

}  // namespace troupe::sim
