#include "actors/gateway/openai/model_catalogue.h"

#include <algorithm>
#include <string>
#include <utility>

#include "actors/gateway/openai/request_limits.h"
#include "base/assert.h"

namespace troupe {

CataloguedModel::CataloguedModel(ServedModel model, std::shared_ptr<const void> owner)
    : owner_(std::move(owner)), served_(std::move(model)), encoder_(served_) {}

Status ModelCatalogue::add(ServedModel model, std::shared_ptr<const void> owner) {
  if (model.name.empty()) {
    return invalid_argument("a served model needs a name; give it one");
  }
  if (find(model.name) != nullptr) {
    return invalid_argument("there is a model named \"" + model.name +
                            "\" already; serve this one under another name");
  }
  if (models_.size() >= kCatalogueModelsMax) {
    return {StatusCode::kResourceExhausted, "the catalogue has " +
                                                std::to_string(kCatalogueModelsMax) +
                                                " models, as many as it takes"};
  }
  if (tool_format_) model.tool_format = tool_format_;
  if (reasoning_format_) model.reasoning_format = reasoning_format_;
  models_.push_back(std::make_unique<CataloguedModel>(std::move(model), std::move(owner)));
  const ServedModel& served = models_.back()->served();
  rules_.push_back({served.name, static_cast<uint32_t>(served.tokenizer.vocab_size()),
                    served.context_tokens, served.request_templates, served.embedding_width,
                    served.digest});
  TROUPE_ASSERT(rules_.size() == models_.size(), rules_.size(), models_.size());
  return ok_status();
}

const CataloguedModel& ModelCatalogue::at(size_t index) const {
  TROUPE_ASSERT(index < models_.size(), index, models_.size());
  return *models_[index];
}

const CataloguedModel* ModelCatalogue::find(std::string_view name) const {
  const auto found = std::find_if(models_.begin(), models_.end(),
                                  [&](const auto& model) { return model->served().name == name; });
  return found == models_.end() ? nullptr : found->get();
}

}  // namespace troupe
