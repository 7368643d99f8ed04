#pragma once
// A whole cluster on one thread, in virtual time: the real cores of its routers, gateways and
// workers over a simulated network and modelled devices, with faults, and with oracles that watch.
// docs/simulation.md tells what it is for and how to use it.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "policies/routing/routing_policy.h"
#include "sim/plant.h"
#include "sim/sim_client.h"
#include "sim/sim_front.h"
#include "sim/sim_worker.h"
#include "sim/workload.h"

namespace troupe::sim {

// How often each kind of fault strikes while requests come in; who, when and for how long is drawn.
// They end together when the last request has come: from then on everything must come to its end.
struct FaultOptions {
  uint32_t worker_crashes = 0, front_crashes = 0;
  uint32_t freezes = 0;
  uint32_t partitions = 0;  // of two nodes, one or both ways
  uint32_t slow_links = 0;
  uint32_t device_failures = 0, stragglers = 0;
  uint32_t clock_jumps = 0;  // forward
  uint32_t drains = 0;       // of workers, which are restarted later
  Duration lasts_max = std::chrono::seconds(3);

  // Whether messages or processes are lost.
  [[nodiscard]] bool lose() const {
    return worker_crashes + front_crashes + freezes + partitions + device_failures + drains > 0;
  }
};

struct WorldOptions {
  uint64_t seed = 1;
  uint32_t fronts = 1;
  uint32_t prefill = 0, decode = 0, mixed = 2;
  SimWorkerOptions worker;  // role and routers are filled in
  uint32_t requests_in_flight_max = 1024;
  SimNetworkOptions network;
  Duration mail_delay_max{0};
  Duration clock_offset_max{0};
  FaultOptions faults;
  Plant plant = Plant::kNone;
  bool checks_tokens = true;
  uint32_t check_every_events = 0;  // invariants of all cores, besides at the end; 0: never
  // From the last arrival on (or from a request's, without faults) to when all is at rest.
  Duration patience = std::chrono::seconds(120);
  Slo slo;
};

struct Outcome {
  std::string violated_oracle;  // empty: all is well
  std::string violation;
  std::vector<std::string> latest_events;
  uint64_t digest = 0, rng_state = 0, events = 0;  // equal on a re-run of the same seed
  Duration virtual_time{0};
  Measured measured;
  SimNetworkStats network;
  struct WorkerUse {
    std::string node;
    wire::Role role = wire::Role::kMixed;
    double busy = 0.0;  // share of the virtual time
    uint64_t steps = 0, tokens = 0, evictions = 0;
    uint64_t prefix_query_tokens = 0, prefix_hit_tokens = 0;
  };
  std::vector<WorkerUse> workers;
  double imports_whole = 0, imports_cut = 0;
  double moved_exposed_seconds = 0;  // from the end of a prompt's computation to its join, summed
};

class World final {
 public:
  // `policy`, of all routers, and `workload` must outlive the world. `print`, if any, hears every
  // event.
  World(const WorldOptions& options, const RoutingPolicy& policy, const Workload& workload,
        EventLog::Print print = nullptr);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Until everything has come to its end, or a rule was broken. Call once.
  [[nodiscard]] Outcome run();

 private:
  template <class Actors>
  struct Place {
    std::unique_ptr<Actors> now;  // null while it is down
    uint64_t incarnation = 0;
    bool frozen = false, device_failed = false;
  };

  [[nodiscard]] Environment environment();
  [[nodiscard]] Process::Options next_life(const std::string& node, uint64_t& incarnation);
  [[nodiscard]] std::string front_node(size_t index) const;
  [[nodiscard]] std::string worker_node(size_t index) const;
  [[nodiscard]] std::string any_node();
  void start_front(size_t index);
  void start_worker(size_t index);
  void stop_front(size_t index);
  void stop_worker(size_t index);

  void schedule_next_arrival();
  void arrive(size_t index);
  void submit(SimClient& client);
  void leave(size_t index);

  // sim/faults.cc
  void schedule_faults();
  void strike(uint32_t kind);
  void crash_worker();
  void crash_front();
  void freeze_one();
  void cut_link();
  void slow_link();
  void disturb_device(bool fails);
  void drain_one();
  void heal();
  [[nodiscard]] Duration fault_length();

  [[nodiscard]] std::string unrest() const;
  void check_invariants() const;
  void check_end();
  void fill(Outcome& outcome);

  const WorldOptions options_;
  const Workload& workload_;
  const SimModel model_;
  EventQueue events_;
  SeededRng rng_;
  EventLog log_;
  Saboteur saboteur_;
  SimNetwork network_;
  const RoutingPolicy& policy_;
  std::vector<Place<SimFront>> fronts_;
  std::vector<Place<SimWorker>> workers_;
  std::vector<std::unique_ptr<SimClient>> clients_;  // by number; null once it is over
  std::set<uint64_t> open_clients_;
  size_t next_arrival_ = 0;
  TimePoint start_{}, last_arrival_{};
  bool healed_ = false;
  // What faults have to take back: blocked links, links with another latency.
  std::multimap<std::string, std::string> blocked_, slowed_;
  Measured measured_;
  double imports_whole_ = 0, imports_cut_ = 0;
};

}  // namespace troupe::sim
