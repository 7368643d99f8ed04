#include "apps/node/described_model.h"

#include "engine/model/printable.h"
#include "engine/tokenizer/gguf_tokenizer.h"

namespace troupe {
namespace {

constexpr size_t kNameBytesMost = 256;

}  // namespace

Result<std::optional<ChatTemplate>> chat_template_of(const GgufFile& file) {
  constexpr std::string_view kKey = "tokenizer.chat_template";
  if (!file.has(kKey)) return std::optional<ChatTemplate>{};
  TROUPE_ASSIGN_OR_RETURN(const std::string_view source, file.get_string(kKey));
  auto compiled = ChatTemplate::compile(std::string(source));
  if (!compiled.ok()) {
    return Status{compiled.status().code(),
                  file.name() + ": its chat template: " + compiled.status().message()};
  }
  return std::optional<ChatTemplate>(std::move(compiled).value());
}

Result<std::shared_ptr<const DescribedModel>> DescribedModel::make(wire::Described message) {
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
  TROUPE_ASSIGN_OR_RETURN(const std::string_view architecture,
                          model->file_->get_string("general.architecture"));
  TROUPE_ASSIGN_OR_RETURN(model->embedding_width_,
                          model->file_->get_u32(std::string(architecture) + ".embedding_length"));
  TROUPE_ASSIGN_OR_RETURN(const TokenizerSpec spec, tokenizer_spec_of(*model->file_));
  TROUPE_ASSIGN_OR_RETURN(model->tokenizer_, Tokenizer::create(spec));
  TROUPE_ASSIGN_OR_RETURN(model->chat_template_, chat_template_of(*model->file_));
  return std::shared_ptr<const DescribedModel>(std::move(model));
}

ServedModel DescribedModel::served(const std::string& name, int64_t created_unix_s) const {
  ServedModel served{name.empty() ? name_ : name, context_tokens_, created_unix_s, *tokenizer_,
                     chat_template_ ? &*chat_template_ : nullptr};
  served.embedding_width = embedding_width_;
  return served;
}

}  // namespace troupe
