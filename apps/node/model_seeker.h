#pragma once
// How a process without a model file gets to know the models: it asks a worker of each.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/gateway/openai/model_catalogue.h"
#include "actors/wire/outbox.h"
#include "apps/node/chat_templates.h"
#include "apps/node/described_model.h"
#include "base/clock.h"
#include "base/metrics/model_metrics.h"

namespace troupe {

struct ModelSeekerOptions {
  std::string reply_to;  // endpoint that gets the answers
  // Names of the first model that becomes known, instead of those that its workers give; for
  // clusters of one model.
  std::vector<std::string> served_names;
  ChatTemplateOptions templates;
};

// Fills the catalogue with the cluster's models, and names them in the metrics. A name belongs to
// the model that had it first; a worker whose model gets none of its names is told so. Runs on the
// gateway's loop; plain state.
class ModelSeeker final {
 public:
  // All references must outlive it.
  ModelSeeker(const Clock& clock, wire::Outbox& outbox, ModelCatalogue& models,
              ModelMetrics& metrics, ModelSeekerOptions options);

  // Asks a worker of each model of this report that is not known, unless an answer may still come.
  void on_health(const wire::Health& health);
  // Repeated answers, and answers that nobody asked for, are dropped.
  void on_described(wire::Described message);

 private:
  // What is known of a model that some worker has.
  struct Model {
    std::optional<TimePoint> asked;  // an answer may still come
    size_t questions = 0;            // so far; each goes to the next worker
    bool known = false;              // described, whether or not it can be served
    std::string conflict;            // why it has fewer names than its workers gave; for these
  };

  void ask(Model& model, const wire::WorkerStatus& worker);
  void add(Model& model, const std::shared_ptr<const DescribedModel>& described);
  void tell_conflicts(const wire::Health& health);

  const Clock& clock_;
  wire::Outbox& outbox_;
  ModelCatalogue& models_;
  ModelMetrics& metrics_;
  const ModelSeekerOptions options_;
  std::map<std::string, Model, std::less<>> seen_;   // by digest
  std::set<std::pair<std::string, uint64_t>> told_;  // of a conflict: endpoint, incarnation
};

}  // namespace troupe
