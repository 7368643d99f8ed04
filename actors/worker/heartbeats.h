#pragma once
// How a worker makes itself known: the same heartbeat to each of its routers.

#include <string>
#include <vector>

#include "actors/wire/outbox.h"
#include "actors/worker/step_watch.h"
#include "engine/schedule/scheduler.h"

namespace troupe {

struct WorkerIdentity {
  WorkerId worker{0};
  uint64_t incarnation = 1;  // differs for each life of the worker; never 0
  std::string endpoint = "worker";
  wire::Role role = wire::Role::kMixed;
  std::string model;  // digest of its file
  std::string model_name;
  KvType kv_type = KvType::kF16;
  uint32_t context_tokens = 0;
  std::vector<std::string> routers = {"router"};
};

class Heartbeats {
 public:
  // `outbox` must outlive this object.
  Heartbeats(wire::Outbox& outbox, WorkerIdentity identity);

  // Every kHeartbeatInterval. A router that cannot be reached finds out by missing them.
  void send(const StepWatch& watch, const wire::Load& load, bool draining);
  // Once, when the worker ends in order; nothing is sent after it.
  void leave();

  [[nodiscard]] const WorkerIdentity& identity() const { return identity_; }
  [[nodiscard]] bool left() const { return left_; }

 private:
  wire::Outbox& outbox_;
  const WorkerIdentity identity_;
  bool left_ = false;
};

// The load of a worker, from what its parts know.
[[nodiscard]] wire::Load load_of(const Scheduler& scheduler, const StepWatch& watch,
                                 const KvStats& kv);

}  // namespace troupe
