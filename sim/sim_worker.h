#pragma once
// A worker of a simulated cluster: the real cores of its actors, over a modelled device and a
// simulated transport.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/decode/decode_core.h"
#include "actors/decode/kv_landings.h"
#include "actors/kv_cache_manager/kv_cache_manager_core.h"
#include "actors/prefill/prefill_core.h"
#include "actors/worker/kv_exporter.h"
#include "sim/process.h"
#include "sim/sim_device.h"

namespace troupe::sim {

struct SimWorkerOptions {
  wire::Role role = wire::Role::kMixed;
  SimModel model;
  CostModel cost;
  uint32_t blocks = 1024;
  uint32_t window_blocks = 0;  // of a model with a window
  uint32_t copy_tokens_min = 1;
  SchedulerOptions scheduler;  // blocks_total, context_tokens and end_tokens are filled in
  uint32_t context_tokens = 2048;
  uint32_t import_tokens_min = 64;
  bool varies = false;               // see SimDevice
  bool checks_idle = false;          // the blocks, whenever nobody has any: O(blocks)
  std::vector<std::string> routers;  // endpoints
};

class SimWorker final {
 public:
  SimWorker(const Environment& environment, const Process::Options& process, WorkerId id,
            const SimWorkerOptions& options);
  ~SimWorker();
  SimWorker(const SimWorker&) = delete;
  SimWorker& operator=(const SimWorker&) = delete;

  [[nodiscard]] Process& process() { return process_; }
  [[nodiscard]] SimDevice& device() { return *device_; }
  [[nodiscard]] wire::Role role() const { return options_.role; }
  [[nodiscard]] const KvStats& kv_stats() const { return kv_stats_; }
  [[nodiscard]] const ServingMetrics& metrics() const { return metrics_; }
  // Of the prompts computed here for others: the time between the end of their computation and the
  // arrival of their last part, summed.
  [[nodiscard]] Duration exposed() const { return exposed_; }
  // As an operator's first SIGTERM, and what follows it.
  void drain();
  void leave();
  [[nodiscard]] bool draining() const { return draining_; }

  // Why it is not at rest: what is held, running or open; empty when nothing is.
  [[nodiscard]] std::string unrest() const;
  // Asserts those of all cores; O(blocks).
  void check_invariants() const;

 private:
  class Ports;
  class Landings;

  void make_memory();
  void start_cores();
  void take(wire::Message message);
  void take_kv(const std::vector<KvRequest>& requests);
  void check_load(const wire::Load& load) const;

  const SimWorkerOptions options_;
  ServingMetrics metrics_{"sim"};
  Process process_;
  SimOutbox outbox_;
  Xxh3BlockHasher hasher_{1};
  KvCacheManagerCore manager_;
  std::vector<uint64_t> memory_, window_memory_;
  WorkerKv kv_;
  std::unique_ptr<Ports> ports_;
  std::unique_ptr<KvLandings> landings_;
  std::unique_ptr<Landings> landing_port_;
  std::unique_ptr<KvExporter> exporter_;
  std::unique_ptr<SimDevice> device_;
  std::unique_ptr<DecodeCore> decode_;  // one of these two
  std::unique_ptr<PrefillCore> prefill_;
  std::unique_ptr<SimInbox> inbox_;
  KvStats kv_stats_;
  Duration exposed_{0};
  bool draining_ = false;
  const WorkerId id_;
};

}  // namespace troupe::sim
