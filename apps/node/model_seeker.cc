#include "apps/node/model_seeker.h"

#include <glog/logging.h>

#include "apps/node/described_model.h"
#include "apps/node/endpoints.h"

namespace troupe {
namespace {

// After which the next worker is asked. An answer is some megabytes.
constexpr std::chrono::seconds kAnswerDeadline{3};

}  // namespace

ModelSeeker::ModelSeeker(const Clock& clock, wire::Outbox& outbox, ModelCatalogue& models,
                         ServingMetrics& metrics, ModelSeekerOptions options)
    : clock_(clock),
      outbox_(outbox),
      models_(models),
      metrics_(metrics),
      options_(std::move(options)) {}

void ModelSeeker::on_health(const wire::Health& health) {
  if (!models_.empty() || health.workers.empty()) return;
  if (asked_ && clock_.now() - *asked_ < kAnswerDeadline) return;
  const wire::WorkerStatus& worker = health.workers[questions_++ % health.workers.size()];
  const std::string endpoint = std::string(node_of(worker.endpoint)) + "/" + kModelEndpoint;
  asked_ = clock_.now();
  if (const Status sent = outbox_.send(endpoint, wire::Describe{options_.reply_to}); !sent.ok())
    LOG(WARNING) << "cannot ask " << endpoint << " for the model: " << sent.message();
}

void ModelSeeker::on_described(wire::Described message) {
  if (!models_.empty() || !asked_) return;
  asked_.reset();
  auto model = DescribedModel::make(std::move(message), options_.templates);
  if (!model.ok()) {
    LOG(ERROR) << "a worker's model cannot be served: " << model.status().message();
    return;
  }
  const ServedModel served = model.value()->served(options_.served_name, clock_.unix_seconds());
  LOG(INFO) << "the model is " << served.name << ", digest " << model.value()->digest()
            << ", context " << served.context_tokens << " tokens";
  if (const Status added = models_.add(served, model.value()); !added.ok()) {
    LOG(ERROR) << "the model " << served.name << ": " << added.message();
    return;
  }
  metrics_.set_model_name(served.name);
}

}  // namespace troupe
