#pragma once
// Prompts that this worker computes, or has in its cache, for decode workers elsewhere. An order
// names the tokens and a landing over blocks that the decode worker has reserved; the scheduler
// turns it into a sequence that samples nothing, and each step carries the blocks that it completes
// to their landings, layer by layer. Not only prefill workers take orders: a decode worker that
// holds most of a prompt gives it away sooner than another computes it.

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "actors/wire/outbox.h"
#include "base/clock.h"
#include "base/metrics/serving_metrics.h"
#include "engine/schedule/scheduler.h"
#include "kernels/ops/kv_storage.h"

namespace troupe {

// Of a worker's KV memory; orders for another shape are refused.
struct KvExtent {
  uint32_t layers = 0;
  uint64_t block_bytes = 0;  // of one layer
  std::string model;         // digest; KV of another one means nothing here
  // Layers with a window that have blocks of their own, besides `layers`, and the window in tokens.
  uint32_t window_layers = 0;
  uint32_t window = 0;
  KvType type = KvType::kF16;
};

// Part of a worker's core, whose scheduler it uses; after each call the core does what follows from
// the scheduler's actions. Invariant: an order is known from its arrival until its decode worker
// has been told how it ended or does not want to know; its blocks stay until nothing reads them,
// also when it is given up.
class ExportOrders {
 public:
  // Sequences of orders have ids from here on; those of requests are below.
  static constexpr uint64_t kFirstSequence = uint64_t{1} << 63;

  // All references must outlive this object.
  ExportOrders(const Clock& clock, wire::Outbox& outbox, Scheduler& scheduler,
               ServingMetrics& metrics, KvExtent extent);

  // `unable`: why this worker takes no orders now, or ok.
  void on_reserved(wire::Reserved message, const Status& unable);
  void on_released(const wire::Released& message);
  void on_kv_reserved(const KvReserved& reply);
  void on_step_done(const StepResult& step);
  // The scheduler has failed all sequences. What the failed step should have exported is not
  // reported; nobody writes these blocks again.
  void on_device_failed();
  // One KvExport of a plan has arrived, or will not: its blocks are read no more.
  void on_exported(uint64_t landing, const Status& status);
  // The node is lost, and with it whoever wanted what is computed for it.
  void on_peer_lost(std::string_view node);
  void on_tick();

  // Adds what the plan's slices complete for their landings.
  void add_exports(StepPlan& plan);
  [[nodiscard]] static bool owns(SequenceId sequence) { return sequence.value >= kFirstSequence; }
  // Of a sequence that it owns.
  void on_emission(const Emission& emission);

  [[nodiscard]] bool empty() const { return orders_.empty(); }
  void check_invariants() const;

 private:
  struct Order {
    std::string reply_to;
    std::shared_ptr<const KvDestination> destination;
    SequenceId sequence;
    uint32_t tokens = 0;
    uint32_t first_block = 0;
    uint32_t next_block = 0;  // the first that has not been exported
    uint32_t cached_tokens = 0;
    uint32_t exports_in_flight = 0;
    bool computed = false;
    // No longer wanted, or it cannot be done; goes when nothing reads its blocks.
    bool given_up = false;
    TimePoint deadline{}, compute_started{}, compute_finished{};
  };
  using Orders = std::map<uint64_t, Order>;  // by landing

  [[nodiscard]] Status check(const wire::Reserved& message) const;
  // The windowed blocks that go with what `exported` has, blocks [next_block, end) of the sequence.
  static void add_window_export(const StepSlice& slice, const Order& order, uint32_t end,
                                KvExport& exported);
  void refuse(const wire::Reserved& message, Status status);
  // Tells the decode worker, once, and gives the order up.
  void fail(Orders::iterator order, Status status);
  void give_up(Orders::iterator order);
  void finish_if_done(Orders::iterator order);

  const Clock& clock_;
  wire::Outbox& outbox_;
  Scheduler& scheduler_;
  ServingMetrics& metrics_;
  const KvExtent extent_;
  const std::shared_ptr<const SamplingParams> params_;  // of every sequence: nothing is sampled
  Orders orders_;
  std::unordered_map<SequenceId, uint64_t> landing_of_;
  uint64_t next_sequence_ = kFirstSequence;
};

}  // namespace troupe
