#pragma once
// The actors of one worker over a node and a loaded model.

#include <memory>
#include <string>
#include <vector>

#include <caf/actor.hpp>

#include "actors/decode/decode_actor.h"
#include "actors/prefill/prefill_actor.h"
#include "apps/node/endpoints.h"
#include "apps/node/engine_options.h"
#include "apps/node/loaded_model.h"
#include "apps/node/node.h"

namespace troupe {

struct WorkerOptions {
  EngineOptions engine;
  wire::Role role = wire::Role::kMixed;
  std::vector<std::string> routers;       // nodes
  std::vector<std::string> served_names;  // of its model; none: the file's name
};

// What must outlive the node's transport. Construct it before the node; destroy it after.
class WorkerParts final {
 public:
  // The references outlive this object.
  WorkerParts(LoadedModel& loaded, ServingMetrics& metrics, const Clock& clock)
      : loaded_(loaded), metrics_(metrics), clock_(clock) {}

  // Spawns the actors and binds their endpoints. Call once. kResourceExhausted: the system refuses
  // to pin the KV memory.
  [[nodiscard]] Result<caf::actor> start(Node& node, const WorkerOptions& options);

 private:
  // Answers who asks for the model.
  class ModelTeller;

  [[nodiscard]] WorkerIdentity identity(const Node& node, const WorkerOptions& options) const;
  [[nodiscard]] caf::actor spawn_decode_worker(Node& node, const WorkerOptions& options);
  [[nodiscard]] caf::actor spawn_prefill_worker(Node& node, const WorkerOptions& options);

  LoadedModel& loaded_;
  ServingMetrics& metrics_;
  const Clock& clock_;
  std::shared_ptr<KvLandings> landings_;
  std::shared_ptr<KvExporter> exporter_;
  std::shared_ptr<ModelTeller> teller_;
};

}  // namespace troupe
