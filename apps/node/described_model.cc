#include "apps/node/described_model.h"

#include "engine/model/printable.h"
#include "engine/tokenizer/gguf_tokenizer.h"

namespace troupe {
namespace {

constexpr size_t kNameBytesMost = 256;

}  // namespace

Result<std::shared_ptr<const DescribedModel>> DescribedModel::make(
    wire::Described message, const ChatTemplateOptions& templates) {
  std::shared_ptr<DescribedModel> model(new DescribedModel());  // private constructor
  model->name_ = printable(message.name, kNameBytesMost);
  model->digest_ = std::move(message.model);
  model->context_tokens_ = message.context_tokens;
  if (model->name_.empty() || model->context_tokens_ == 0) {
    return Status{StatusCode::kDataLoss,
                  "a worker described a model without a name or a context length"};
  }
  TROUPE_ASSIGN_OR_RETURN(
      model->file_, GgufFile::from_header(std::move(message.header), "the model " + model->name_));
  TROUPE_ASSIGN_OR_RETURN(const TokenizerSpec spec, tokenizer_spec_of(*model->file_));
  TROUPE_ASSIGN_OR_RETURN(model->tokenizer_, Tokenizer::create(spec));
  TROUPE_ASSIGN_OR_RETURN(model->templates_, ChatTemplates::choose(templates, *model->file_));
  model->request_templates_ = templates.request_templates();
  return std::shared_ptr<const DescribedModel>(std::move(model));
}

ServedModel DescribedModel::served(const std::string& name, int64_t created_unix_s) const {
  return {name.empty() ? name_ : name, context_tokens_,         created_unix_s,    *tokenizer_,
          templates_.plain(),          templates_.with_tools(), request_templates_};
}

}  // namespace troupe
