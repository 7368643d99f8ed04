#include "apps/node/described_model.h"

#include "engine/model/printable.h"
#include "engine/tokenizer/gguf_tokenizer.h"

namespace troupe {
namespace {

constexpr size_t kNameBytesMost = 256;
// Of one model; further ones are not served.
constexpr size_t kNamesMost = 16;

}  // namespace

Result<std::shared_ptr<const DescribedModel>> DescribedModel::make(
    wire::Described message, const ChatTemplateOptions& templates) {
  std::shared_ptr<DescribedModel> model(new DescribedModel());  // private constructor
  for (const std::string& name : message.served_names) {
    if (model->names_.size() >= kNamesMost) break;
    if (!name.empty()) model->names_.push_back(printable(name, kNameBytesMost));
  }
  const std::string file_name = printable(message.name, kNameBytesMost);
  if (model->names_.empty()) model->names_.push_back(file_name);
  model->digest_ = std::move(message.model);
  model->context_tokens_ = message.context_tokens;
  if (model->names_[0].empty() || model->context_tokens_ == 0) {
    return Status{StatusCode::kDataLoss,
                  "a worker described a model without a name or a context length"};
  }
  TROUPE_ASSIGN_OR_RETURN(
      model->file_, GgufFile::from_header(std::move(message.header), "the model " + file_name));
  TROUPE_ASSIGN_OR_RETURN(const std::string_view architecture,
                          model->file_->get_string("general.architecture"));
  TROUPE_ASSIGN_OR_RETURN(model->embedding_width_,
                          model->file_->get_u32(std::string(architecture) + ".embedding_length"));
  TROUPE_ASSIGN_OR_RETURN(const TokenizerSpec spec, tokenizer_spec_of(*model->file_));
  TROUPE_ASSIGN_OR_RETURN(model->tokenizer_, Tokenizer::create(spec));
  TROUPE_ASSIGN_OR_RETURN(model->templates_, ChatTemplates::choose(templates, *model->file_));
  model->request_templates_ = templates.request_templates();
  return std::shared_ptr<const DescribedModel>(std::move(model));
}

ServedModel DescribedModel::served(const std::string& name, const std::string& root,
                                   int64_t created_unix_s) const {
  ServedModel out{name,
                  context_tokens_,
                  created_unix_s,
                  *tokenizer_,
                  templates_.plain(),
                  templates_.with_tools(),
                  request_templates_};
  out.embedding_width = embedding_width_;
  out.digest = digest_;
  out.root = root;
  return out;
}

}  // namespace troupe
