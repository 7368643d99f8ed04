#pragma once
// How a process without a model file gets to know the model: it asks a worker.

#include <functional>
#include <optional>
#include <string>

#include "actors/gateway/openai/model_catalogue.h"
#include "actors/wire/outbox.h"
#include "apps/node/chat_templates.h"
#include "base/clock.h"
#include "base/metrics/serving_metrics.h"

namespace troupe {

struct ModelSeekerOptions {
  std::string reply_to;     // endpoint that gets the answers
  std::string served_name;  // of the model in the catalogue; empty: as the worker says
  ChatTemplateOptions templates;
};

// Fills the catalogue with the cluster's model, and names it in the metrics. Runs on the gateway's
// loop; plain state.
class ModelSeeker final {
 public:
  // All references must outlive it.
  ModelSeeker(const Clock& clock, wire::Outbox& outbox, ModelCatalogue& models,
              ServingMetrics& metrics, ModelSeekerOptions options);

  // Asks a worker of this report, unless the model is known or an answer may still come.
  void on_health(const wire::Health& health);
  // Repeated answers, and answers that nobody asked for, are dropped.
  void on_described(wire::Described message);

 private:
  const Clock& clock_;
  wire::Outbox& outbox_;
  ModelCatalogue& models_;
  ServingMetrics& metrics_;
  const ModelSeekerOptions options_;
  std::optional<TimePoint> asked_;
  size_t questions_ = 0;  // so far; each goes to the next worker
};

}  // namespace troupe
