#include "actors/worker/export_orders.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "engine/kv/window.h"
#include "troupe/transport.h"

namespace troupe {
namespace {

uint32_t blocks_for(uint64_t tokens) {
  return static_cast<uint32_t>((tokens + kBlockTokens - 1) / kBlockTokens);
}

std::shared_ptr<const SamplingParams> no_sampling() {
  SamplingParams params;
  params.max_tokens = 0;
  return std::make_shared<const SamplingParams>(std::move(params));
}

}  // namespace

ExportOrders::ExportOrders(const Clock& clock, wire::Outbox& outbox, Scheduler& scheduler,
                           ServingMetrics& metrics, KvExtent extent)
    : clock_(clock),
      outbox_(outbox),
      scheduler_(scheduler),
      metrics_(metrics),
      extent_(std::move(extent)),
      params_(no_sampling()) {}

Status ExportOrders::check(const wire::Reserved& message) const {
  if (message.model != extent_.model) {
    return invalid_argument("the decode worker's model is " + message.model +
                            ", this worker's is " + extent_.model +
                            ": KV moves only between workers of one model");
  }
  if (message.kv_type != extent_.type) {
    return invalid_argument("the decode worker's KV is in " +
                            std::string(to_string(message.kv_type)) + ", this worker's in " +
                            std::string(to_string(extent_.type)) +
                            ": start both with the same --kv-cache-dtype");
  }
  if (message.layers != extent_.layers || message.block_bytes != extent_.block_bytes) {
    return invalid_argument("the decode worker's KV has " + std::to_string(message.layers) +
                            " layers with blocks of " + std::to_string(message.block_bytes) +
                            " bytes, this worker's has " + std::to_string(extent_.layers) + " of " +
                            std::to_string(extent_.block_bytes) + ": run the same version on both");
  }
  if (message.window_layers != extent_.window_layers || message.window != extent_.window) {
    return invalid_argument("the decode worker keeps KV of " +
                            std::to_string(message.window_layers) + " layers for " +
                            std::to_string(message.window) + " tokens only, this worker that of " +
                            std::to_string(extent_.window_layers) + " for " +
                            std::to_string(extent_.window) + ": run the same version on both");
  }
  if (message.first_block >= blocks_for(message.tokens.size())) {
    return invalid_argument("an order for blocks from " + std::to_string(message.first_block) +
                            " on has only " + std::to_string(message.tokens.size()) + " tokens");
  }
  return ok_status();
}

void ExportOrders::on_reserved(wire::Reserved message, const Status& unable) {
  const uint64_t landing = message.ticket.landing;
  if (orders_.contains(landing)) return;  // a repeated message
  Status added = unable.ok() ? check(message) : unable;
  Order order;
  order.reply_to = message.reply_to;
  order.tokens = static_cast<uint32_t>(message.tokens.size());
  order.first_block = order.next_block = message.first_block;
  order.deadline = clock_.now() + message.deadline;
  if (added.ok()) {
    TROUPE_ASSERT(message.model == extent_.model && message.layers == extent_.layers, message.model,
                  message.layers);
    KvDestination destination;
    destination.node = std::string(node_of(message.reply_to));
    destination.ticket = message.ticket;
    destination.layers = message.layers;
    destination.blocks = blocks_for(order.tokens) - order.first_block;
    destination.block_bytes = message.block_bytes;
    destination.window_layers = message.window_layers;
    if (message.window_layers > 0) {
      const uint32_t seen = first_kept_block(order.tokens, message.window);
      destination.window_first = std::max(seen, order.first_block) - order.first_block;
    }
    order.destination = std::make_shared<const KvDestination>(std::move(destination));
    order.sequence = SequenceId(next_sequence_++);
    SequenceSpec spec;
    spec.id = order.sequence;
    spec.request = message.request;
    spec.prompt = std::make_shared<const std::vector<TokenId>>(std::move(message.tokens));
    spec.params = params_;
    spec.cache_salt = message.cache_salt;
    spec.arrival = clock_.now();
    spec.deadline = order.deadline;
    spec.prefill_only = true;
    added = scheduler_.add(std::move(spec));
  }
  if (!added.ok()) return refuse(message, std::move(added));
  landing_of_.emplace(order.sequence, landing);
  orders_.emplace(landing, std::move(order));
}

void ExportOrders::refuse(const wire::Reserved& message, Status status) {
  metrics_.kv_exports_cut.Increment();
  wire::Prefilled ended;
  ended.landing = message.ticket.landing;
  ended.error = std::move(status);
  [[maybe_unused]] const Status sent = outbox_.send(message.reply_to, ended);
}

void ExportOrders::on_released(const wire::Released& message) {
  const auto order = orders_.find(message.landing);
  if (order != orders_.end()) give_up(order);
}

void ExportOrders::on_kv_reserved(const KvReserved& reply) {
  const auto landing = landing_of_.find(reply.sequence);
  if (landing != landing_of_.end()) orders_.at(landing->second).cached_tokens = reply.cached_tokens;
}

void ExportOrders::on_step_done(const StepResult& step) {
  for (const SliceResult& slice : step.slices) {
    const auto landing = landing_of_.find(slice.sequence);
    if (landing == landing_of_.end()) continue;
    Order& order = orders_.at(landing->second);
    if (order.compute_started == TimePoint{}) order.compute_started = step.started;
    order.compute_finished = step.finished;
  }
}

void ExportOrders::on_device_failed() {
  for (auto& [landing, order] : orders_) order.exports_in_flight = 0;
}

void ExportOrders::on_exported(uint64_t landing, const Status& status) {
  const auto order = orders_.find(landing);
  if (order == orders_.end()) return;  // of a device that failed
  if (order->second.exports_in_flight > 0) --order->second.exports_in_flight;
  if (status.ok()) {
    finish_if_done(order);
  } else {
    fail(order, status);
  }
}

void ExportOrders::on_peer_lost(std::string_view node) {
  std::vector<uint64_t> lost;
  for (const auto& [landing, order] : orders_) {
    if (node_of(order.reply_to) == node) lost.push_back(landing);
  }
  for (const uint64_t landing : lost) give_up(orders_.find(landing));
}

void ExportOrders::on_tick() {
  std::vector<uint64_t> overdue;
  for (const auto& [landing, order] : orders_) {
    if (!order.given_up && clock_.now() > order.deadline) overdue.push_back(landing);
  }
  // The decode worker computes it itself by now.
  for (const uint64_t landing : overdue) give_up(orders_.find(landing));
}

// A step exports what it makes whole: full blocks, and with the prompt's last token the partial
// one. The first step of an order also takes along what was cached here and is missing there.
void ExportOrders::add_exports(StepPlan& plan) {
  for (const StepSlice& slice : plan.slices) {
    const auto landing = landing_of_.find(slice.sequence);
    if (landing == landing_of_.end()) continue;  // not for others
    Order& order = orders_.at(landing->second);
    if (order.given_up) continue;
    const auto after = static_cast<uint32_t>(slice.position + slice.tokens.size());
    const uint32_t whole = after == order.tokens ? blocks_for(after) : after / kBlockTokens;
    if (whole <= order.next_block) continue;
    KvExport& exported = plan.exports.emplace_back();
    exported.to = order.destination;
    exported.first = order.next_block - order.first_block;
    exported.blocks.assign(slice.blocks.begin() + order.next_block, slice.blocks.begin() + whole);
    if (exported.to->window_layers > 0) add_window_export(slice, order, whole, exported);
    metrics_.kv_blocks_exported.Increment(static_cast<double>(exported.blocks.size()));
    order.next_block = whole;
    ++order.exports_in_flight;
  }
}

// What is still seen behind the order's last token stands until the order's end.
void ExportOrders::add_window_export(const StepSlice& slice, const Order& order, uint32_t end,
                                     KvExport& exported) {
  const uint32_t wanted = order.first_block + exported.to->window_first;
  const uint32_t first = std::max(order.next_block, wanted);
  if (first >= end) return;
  TROUPE_ASSERT(first >= slice.window_first, slice.sequence, first, slice.window_first);
  exported.window_first = first - order.first_block;
  exported.window_blocks.assign(slice.window_blocks.begin() + (first - slice.window_first),
                                slice.window_blocks.begin() + (end - slice.window_first));
}

void ExportOrders::on_emission(const Emission& emission) {
  const auto landing = landing_of_.find(emission.sequence);
  if (landing == landing_of_.end()) return;
  const auto order = orders_.find(landing->second);
  if (!emission.failed.ok()) return fail(order, emission.failed);
  TROUPE_ASSERT(emission.end.has_value() && emission.tokens.empty(), emission.sequence);
  order->second.computed = true;
  finish_if_done(order);
}

void ExportOrders::fail(Orders::iterator order, Status status) {
  if (!order->second.given_up) {
    wire::Prefilled ended;
    ended.landing = order->first;
    ended.error = std::move(status);
    [[maybe_unused]] const Status sent = outbox_.send(order->second.reply_to, ended);
  }
  give_up(order);
}

void ExportOrders::give_up(Orders::iterator order) {
  if (!std::exchange(order->second.given_up, true)) metrics_.kv_exports_cut.Increment();
  finish_if_done(order);
}

// Whatever is still to be read keeps the blocks; what arrives for a landing that is gone is refused
// there.
void ExportOrders::finish_if_done(Orders::iterator order) {
  const Order& done = order->second;
  if (done.exports_in_flight > 0 || !(done.computed || done.given_up)) return;
  if (!done.given_up) {
    TROUPE_ASSERT(done.next_block == blocks_for(done.tokens), order->first, done.next_block);
    wire::Prefilled prefilled;
    prefilled.landing = order->first;
    prefilled.cached_tokens = done.cached_tokens;
    prefilled.compute_started = done.compute_started;
    prefilled.compute_finished = done.compute_finished;
    prefilled.finished = clock_.now();
    [[maybe_unused]] const Status sent = outbox_.send(done.reply_to, prefilled);
    metrics_.kv_exports_whole.Increment();
    metrics_.kv_exposed_seconds.Observe(
        std::chrono::duration<double>(
            std::max(Duration{0}, prefilled.finished - done.compute_finished))
            .count());
  }
  scheduler_.cancel(done.sequence);
  landing_of_.erase(done.sequence);
  orders_.erase(order);
}

void ExportOrders::check_invariants() const {
  TROUPE_ASSERT(landing_of_.size() == orders_.size(), landing_of_.size(), orders_.size());
  for (const auto& [landing, order] : orders_) {
    TROUPE_ASSERT(landing_of_.at(order.sequence) == landing, landing, order.sequence);
    TROUPE_ASSERT(order.next_block <= blocks_for(order.tokens), landing, order.next_block);
  }
}

}  // namespace troupe
