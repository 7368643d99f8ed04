#include "apps/node/model_seeker.h"

#include <glog/logging.h>

#include "actors/gateway/openai/request_limits.h"
#include "apps/node/endpoints.h"

namespace troupe {
namespace {

// After which the next worker is asked. An answer is some megabytes.
constexpr std::chrono::seconds kAnswerDeadline{3};
// Digests of workers that came and went; beyond it no new model is sought.
constexpr size_t kModelsSeenMax = 4 * kCatalogueModelsMax;

}  // namespace

ModelSeeker::ModelSeeker(const Clock& clock, wire::Outbox& outbox, ModelCatalogue& models,
                         ModelMetrics& metrics, ModelSeekerOptions options)
    : clock_(clock),
      outbox_(outbox),
      models_(models),
      metrics_(metrics),
      options_(std::move(options)) {}

void ModelSeeker::on_health(const wire::Health& health) {
  std::map<std::string_view, std::vector<const wire::WorkerStatus*>> unknown;
  for (const wire::WorkerStatus& worker : health.workers) {
    // Nobody can ask for a model that nobody decodes.
    if (worker.role == wire::Role::kPrefill) continue;
    const auto seen = seen_.find(worker.model);
    if (seen == seen_.end() || !seen->second.known) unknown[worker.model].push_back(&worker);
  }
  for (const auto& [digest, workers] : unknown) {
    if (seen_.size() >= kModelsSeenMax && !seen_.contains(digest)) continue;
    Model& model = seen_[std::string(digest)];
    if (model.asked && clock_.now() - *model.asked < kAnswerDeadline) continue;
    ask(model, *workers[model.questions++ % workers.size()]);
  }
  tell_conflicts(health);
}

void ModelSeeker::ask(Model& model, const wire::WorkerStatus& worker) {
  const std::string endpoint = std::string(node_of(worker.endpoint)) + "/" + kModelEndpoint;
  model.asked = clock_.now();
  if (const Status sent = outbox_.send(endpoint, wire::Describe{options_.reply_to}); !sent.ok())
    LOG(WARNING) << "cannot ask " << endpoint << " for the model: " << sent.message();
}

void ModelSeeker::on_described(wire::Described message) {
  const auto seen = seen_.find(message.model);
  if (seen == seen_.end() || seen->second.known || !seen->second.asked) return;
  seen->second.asked.reset();
  auto described = DescribedModel::make(std::move(message), options_.templates);
  if (!described.ok()) {
    LOG(ERROR) << "a worker's model cannot be served: " << described.status().message();
    return;
  }
  add(seen->second, described.value());
}

void ModelSeeker::add(Model& model, const std::shared_ptr<const DescribedModel>& described) {
  model.known = true;
  std::vector<std::string> names = described->names();
  if (!options_.served_names.empty()) {
    if (models_.empty()) {
      names = options_.served_names;
    } else {
      LOG(ERROR)
          << "this router's served-model-name is for one model, but the cluster has several; "
             "the model "
          << names[0] << " keeps the name that its worker gave";
    }
  }
  std::string root;
  for (const std::string& name : names) {
    const ServedModel served =
        described->served(name, root.empty() ? name : root, clock_.unix_seconds());
    if (const Status added = models_.add(served, described); !added.ok()) {
      model.conflict += (model.conflict.empty() ? "" : "; ") + added.message();
      continue;
    }
    if (root.empty()) root = name;
    LOG(INFO) << "the model " << name << ", digest " << described->digest() << ", context "
              << served.context_tokens << " tokens";
  }
  if (!root.empty()) metrics_.add(described->digest(), root);
  if (model.conflict.empty()) return;
  model.conflict = (root.empty() ? "its model gets no requests: " : "its model lacks a name: ") +
                   model.conflict + " (--served-model-name at the worker)";
  LOG(ERROR) << "the model with digest " << described->digest() << ": " << model.conflict;
}

void ModelSeeker::tell_conflicts(const wire::Health& health) {
  std::set<std::pair<std::string, uint64_t>> told;
  for (const wire::WorkerStatus& worker : health.workers) {
    const auto seen = seen_.find(worker.model);
    if (seen == seen_.end() || seen->second.conflict.empty()) continue;
    const std::pair<std::string, uint64_t> life(worker.endpoint, worker.incarnation);
    if (!told_.contains(life) &&
        !outbox_.send(worker.endpoint, wire::Refused{seen->second.conflict}).ok())
      continue;
    told.insert(life);
  }
  told_ = std::move(told);
}

}  // namespace troupe
