#pragma once
// The models that the front ends serve, by the names that requests use. A model has one row for
// each of its names; an answer says the name that its request said.

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "actors/gateway/openai/prompt_encoder.h"
#include "actors/gateway/openai/request.h"
#include "actors/gateway/openai/served_model.h"
#include "troupe/status.h"

namespace troupe {

// A model with what is derived from it once. Immutable; its address does not change.
class CataloguedModel final {
 public:
  CataloguedModel(ServedModel model, std::shared_ptr<const void> owner);
  CataloguedModel(const CataloguedModel&) = delete;
  CataloguedModel& operator=(const CataloguedModel&) = delete;

  [[nodiscard]] const ServedModel& served() const { return served_; }
  [[nodiscard]] const PromptEncoder& encoder() const { return encoder_; }

 private:
  std::shared_ptr<const void> owner_;  // of the tokenizer and the template; destroyed last
  ServedModel served_;
  PromptEncoder encoder_;
};

// May be empty at first: a gateway that starts before its workers learns of models from them. A
// model stays as long as the catalogue, since requests refer to it. Event-loop thread only.
class ModelCatalogue final {
 public:
  ModelCatalogue() = default;
  ModelCatalogue(const ModelCatalogue&) = delete;
  ModelCatalogue& operator=(const ModelCatalogue&) = delete;

  // Of all models that are added from now on, whatever their own say; nothing: as theirs say.
  void use_formats(std::optional<ToolFormat> tools, std::optional<ReasoningFormat> reasoning) {
    tool_format_ = tools;
    reasoning_format_ = reasoning;
  }

  // `owner` keeps alive what `model` refers to; null where that outlives the catalogue anyway.
  // kInvalidArgument: the name is empty or taken; kResourceExhausted: kCatalogueModelsMax are
  // there.
  [[nodiscard]] Status add(ServedModel model, std::shared_ptr<const void> owner = nullptr);

  [[nodiscard]] size_t size() const { return models_.size(); }
  [[nodiscard]] bool empty() const { return models_.empty(); }
  // In the order in which they were added.
  [[nodiscard]] const CataloguedModel& at(size_t index) const;
  // Null: there is none of this name.
  [[nodiscard]] const CataloguedModel* find(std::string_view name) const;
  // What request bodies are checked against, in the same order; valid until the next add().
  [[nodiscard]] std::span<const RequestRules> rules() const { return rules_; }

 private:
  std::vector<std::unique_ptr<CataloguedModel>> models_;
  std::vector<RequestRules> rules_;
  std::optional<ToolFormat> tool_format_;
  std::optional<ReasoningFormat> reasoning_format_;
};

}  // namespace troupe
