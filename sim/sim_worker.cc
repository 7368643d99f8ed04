#include "sim/sim_worker.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/limits.h"

namespace troupe::sim {
namespace {

// Between the deadline of an import and the end of its landing: the tick that notices it, and the
// part that is being written.
constexpr Duration kLandingSlack = std::chrono::milliseconds(1500);

}  // namespace

// Mail to the worker's other actors.
class SimWorker::Ports final : public WorkerPorts {
 public:
  explicit Ports(SimWorker& worker) : worker_(worker) {}

  void ask_kv(std::vector<KvRequest> requests) override {
    Saboteur& saboteur = worker_.process_.environment().saboteur;
    std::erase_if(requests, [&saboteur](const KvRequest& request) {
      return (std::holds_alternative<KvEndLease>(request) &&
              saboteur.strikes(Plant::kSkipEndLease)) ||
             (std::holds_alternative<KvRelease>(request) && saboteur.strikes(Plant::kSkipRelease));
    });
    worker_.process_.mail(Channel::kCoreToManager,
                          [this, requests = std::move(requests)] { worker_.take_kv(requests); });
  }

  void submit(StepPlan plan) override {
    const auto mailed = std::make_shared<StepPlan>(std::move(plan));
    worker_.process_.mail(Channel::kCoreToDevice,
                          [this, mailed] { worker_.device_->execute(std::move(*mailed)); });
  }

 private:
  SimWorker& worker_;
};

// The landings, and whether each is closed by its deadline.
class SimWorker::Landings final : public LandingPort {
 public:
  explicit Landings(SimWorker& worker) : worker_(worker) {}

  Result<BulkTicket> open(const LandingBlocks& blocks, uint64_t label_high,
                          uint64_t label_low) override {
    return worker_.landings_->open(blocks, label_high, label_low);
  }
  void close(uint64_t landing) override {
    Process& process = worker_.process_;
    process.environment().log.note("closes landing", process.node(), landing);
    const auto close = [this, landing] { worker_.landings_->close(landing); };
    if (process.environment().saboteur.strikes(Plant::kLateLanding)) {
      return process.after(std::chrono::minutes(1), close);
    }
    close();
  }

  void expect(const wire::Reserved& order) {
    deadlines_[order.ticket.landing] = {
        worker_.process_.environment().events.now() + order.deadline + kLandingSlack,
        worker_.process_.freezes()};
  }
  void closed(uint64_t landing) {
    const auto found = deadlines_.find(landing);
    if (found == deadlines_.end()) return;
    const Deadline deadline = found->second;
    deadlines_.erase(found);
    Process& process = worker_.process_;
    if (process.freezes() != deadline.freezes) return;
    if (process.environment().events.now() > deadline.time) {
      process.environment().log.violate(
          "deadline",
          process.node() + " had landing " + std::to_string(landing) + " open past its deadline");
    }
  }

 private:
  struct Deadline {
    TimePoint time;
    uint64_t freezes = 0;
  };
  SimWorker& worker_;
  std::map<uint64_t, Deadline> deadlines_;
};

SimWorker::SimWorker(const Environment& environment, const Process::Options& process, WorkerId id,
                     const SimWorkerOptions& options)
    : options_(options),
      process_(environment, process),
      outbox_(process_,
              [this](const wire::Message& message) {
                if (const auto* order = std::get_if<wire::Reserved>(&message))
                  landing_port_->expect(*order);
                if (const auto* beat = std::get_if<wire::Heartbeat>(&message))
                  check_load(beat->load);
                const auto* prefilled = std::get_if<wire::Prefilled>(&message);
                if (prefilled != nullptr && prefilled->error.ok())
                  exposed_ += prefilled->finished - prefilled->compute_finished;
              }),
      manager_({.blocks = options.blocks,
                .copy_tokens_min = options.copy_tokens_min,
                .window = options.model.window,
                .window_blocks = options.window_blocks},
               hasher_),
      ports_(std::make_unique<Ports>(*this)),
      kv_stats_(manager_.stats()),
      id_(id) {
  make_memory();
  start_cores();
  inbox_ = std::make_unique<SimInbox>(process_, "worker", Channel::kTransportToCore,
                                      [this](wire::Message message) { take(std::move(message)); });
  process_.watch_peers([this](std::string node, std::string /*why*/) {
    process_.mail(Channel::kTransportToCore, [this, node = std::move(node)] {
      if (decode_) decode_->on_peer_lost(node);
      if (prefill_) prefill_->on_peer_lost(node);
    });
  });
  process_.every(limits::kHeartbeatInterval, [this] {
    if (decode_) decode_->on_tick();
    if (prefill_) prefill_->on_tick();
  });
}

void SimWorker::make_memory() {
  const SimModel& model = options_.model;
  const auto make = [this](std::vector<uint64_t>& memory, uint32_t layers, uint32_t blocks) {
    // What stands in memory that was never written must not look like KV.
    memory.assign(size_t{layers} * blocks * kBlockTokens, 0xbad0bad0bad0bad0U);
    const KvMemory kv{.memory = std::as_writable_bytes(std::span(memory)),
                      .layers = layers,
                      .blocks = blocks,
                      .block_stride = kSimBlockBytes,
                      .layer_stride = blocks * kSimBlockBytes,
                      .block_bytes = kSimBlockBytes};
    if (options_.role != wire::Role::kMixed) {
      const Status registered = process_.transport().register_memory(kv.memory);
      TROUPE_ASSERT(registered.ok(), registered.message());
    }
    return kv;
  };
  kv_.all = make(memory_, model.layers - model.windowed_layers(), options_.blocks);
  if (model.window == 0) return;
  kv_.windowed = make(window_memory_, model.windowed_layers(), options_.window_blocks);
  kv_.window = model.window;
  for (uint32_t l = 0; l < model.layers; ++l) kv_.is_windowed.push_back(model.windowed(l));
}

void SimWorker::start_cores() {
  SchedulerOptions scheduler = options_.scheduler;
  scheduler.blocks_total = options_.blocks;
  scheduler.window = options_.model.window;
  scheduler.window_blocks_total = options_.window_blocks;
  scheduler.context_tokens = options_.context_tokens;
  scheduler.end_tokens = {options_.model.end_token};
  WorkerIdentity identity;
  identity.worker = id_;
  identity.incarnation = process_.incarnation();
  identity.endpoint = process_.transport().address_of("worker");
  identity.role = options_.role;
  identity.model = "simulated model";
  identity.context_tokens = options_.context_tokens;
  identity.routers = options_.routers;
  const SimDevice::Options device{options_.model, options_.cost, scheduler.step_tokens_max,
                                  options_.varies};
  if (options_.role != wire::Role::kMixed) {
    exporter_ = std::make_unique<KvExporter>(
        process_.transport(), kv_, [this](uint64_t landing, Status status) {
          process_.mail(Channel::kTransportToCore, [this, landing, status = std::move(status)] {
            if (prefill_) prefill_->on_exported(landing, status);
            if (decode_) decode_->on_exported(landing, status);
          });
        });
  }
  device_ =
      std::make_unique<SimDevice>(process_, device, kv_, manager_.pool(), manager_.window_pool(),
                                  exporter_.get(), [this](Result<StepResult> result) {
                                    if (prefill_) {
                                      prefill_->on_step_done(std::move(result));
                                    } else {
                                      decode_->on_step_done(std::move(result));
                                    }
                                  });
  const KvExtent kv{kv_.all.layers, kv_.all.block_bytes, identity.model, kv_.windowed.layers,
                    kv_.window};
  if (options_.role == wire::Role::kPrefill) {
    prefill_ = std::make_unique<PrefillCore>(process_.clock(), outbox_, *ports_, metrics_,
                                             PrefillOptions{identity, scheduler, kv});
    return;
  }
  landing_port_ = std::make_unique<Landings>(*this);
  if (options_.role == wire::Role::kDecode) {
    landings_ = std::make_unique<KvLandings>(
        process_.transport(), kv_, [this](uint64_t landing, uint32_t blocks) {
          process_.environment().log.note("landing closed", process_.node(), landing, blocks);
          landing_port_->closed(landing);
          process_.mail(Channel::kCoreToItself,
                        [this, landing, blocks] { decode_->on_landing_closed(landing, blocks); });
        });
  }
  DecodeOptions decode;
  decode.identity = identity;
  decode.scheduler = scheduler;
  decode.import_tokens_min = options_.import_tokens_min;
  decode.kv = kv;
  decode_ = std::make_unique<DecodeCore>(process_.clock(), outbox_, *ports_,
                                         landings_ ? landing_port_.get() : nullptr, metrics_,
                                         std::move(decode));
}

SimWorker::~SimWorker() {
  inbox_.reset();
  process_.end();  // whoever its callbacks reach is still there
}

void SimWorker::take(wire::Message message) {
  if (auto* reserved = std::get_if<wire::Reserved>(&message)) {
    return prefill_ ? prefill_->on_reserved(std::move(*reserved))
                    : decode_->on_reserved(std::move(*reserved));
  }
  if (auto* released = std::get_if<wire::Released>(&message))
    return prefill_ ? prefill_->on_released(*released) : decode_->on_released(*released);
  if (decode_) {
    if (auto* routed = std::get_if<wire::Routed>(&message))
      return decode_->on_routed(std::move(*routed));
    if (auto* cancelled = std::get_if<wire::Cancelled>(&message))
      return decode_->on_cancelled(*cancelled);
    if (auto* prefilled = std::get_if<wire::Prefilled>(&message))
      return decode_->on_prefilled(*prefilled);
  }
  process_.environment().log.violate("message", process_.node() +
                                                    " got a message that is not for it, of kind " +
                                                    std::to_string(message.index()));
}

void SimWorker::take_kv(const std::vector<KvRequest>& requests) {
  const auto replies = std::make_shared<std::vector<KvReply>>();
  manager_.on_requests(requests, *replies);
  kv_stats_ = manager_.stats();
  if (options_.checks_idle && kv_stats_.sequences == 0) manager_.check_invariants();
  if (!replies->empty() && process_.environment().saboteur.strikes(Plant::kDropKvReplies)) return;
  process_.mail(Channel::kManagerToCore, [this, replies, stats = kv_stats_] {
    if (decode_) decode_->on_kv_replies(*replies, stats);
    if (prefill_) prefill_->on_kv_replies(*replies, stats);
  });
}

void SimWorker::check_load(const wire::Load& load) const {
  const auto violate = [this](const std::string& what) {
    process_.environment().log.violate("queue", process_.node() + what);
  };
  if (load.running > options_.scheduler.running_max) violate(" runs too many sequences");
  // Besides those that wait for admission there are those that had to give their blocks back.
  if (load.waiting > options_.scheduler.waiting_max + options_.scheduler.running_max)
    violate(" has too many sequences waiting");
  if (load.blocks_used > options_.blocks) violate(" uses more blocks than it has");
}

void SimWorker::drain() {
  draining_ = true;
  if (decode_) decode_->drain();
  if (prefill_) prefill_->drain();
}

void SimWorker::leave() {
  if (decode_) decode_->leave();
  if (prefill_) prefill_->leave();
}

std::string SimWorker::unrest() const {
  std::string why;
  const KvStats stats = manager_.stats();
  if (decode_ && !decode_->idle()) why += " its decode core has work;";
  if (prefill_ && !prefill_->idle()) why += " its prefill core has orders;";
  const auto count = [&why](const char* what, uint64_t value) {
    if (value > 0) why += " " + std::to_string(value) + what;
  };
  count(" sequences hold blocks;", stats.sequences);
  count(" blocks are computing;", stats.blocks_computing);
  count(" blocks are leased;", stats.blocks_leased);
  count(" blocks are held;", stats.blocks_held);
  count(" windowed blocks are promised;", stats.window_promised);
  count(" reserves are deferred;", stats.reserves_deferred);
  count(" landings are open;", process_.transport().landings_open());
  return why.empty() ? why : process_.node() + ":" + why;
}

void SimWorker::check_invariants() const {
  manager_.check_invariants();
  if (decode_) decode_->check_invariants();
  if (prefill_) prefill_->check_invariants();
}

}  // namespace troupe::sim
