#pragma once
#include <vector>

#include "engine/kv/kv_messages.h"
#include "engine/step.h"

namespace troupe {

// How the core of a worker reaches the other two actors of its worker. Non-blocking.
class WorkerPorts {
 public:
  virtual ~WorkerPorts() = default;
  // Answered by on_kv_replies(), in any number of parts.
  virtual void ask_kv(std::vector<KvRequest> requests) = 0;
  // Answered by one on_step_done().
  virtual void submit(StepPlan plan) = 0;
};

}  // namespace troupe
