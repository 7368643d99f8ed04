#pragma once
// A model as a worker described it: enough to tokenise and to apply the chat template.

#include <memory>
#include <string>
#include <vector>

#include "actors/gateway/openai/served_model.h"
#include "actors/wire/messages.h"
#include "apps/node/chat_templates.h"
#include "engine/model/gguf_file.h"
#include "engine/tokenizer/tokenizer.h"

namespace troupe {

class DescribedModel final {
 public:
  // kDataLoss, kUnsupported: as of GgufFile, Tokenizer and ChatTemplates; the bytes are a peer's.
  [[nodiscard]] static Result<std::shared_ptr<const DescribedModel>> make(
      wire::Described message, const ChatTemplateOptions& templates);
  DescribedModel(const DescribedModel&) = delete;
  DescribedModel& operator=(const DescribedModel&) = delete;

  // What requests may call it, as the worker says; never empty.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  // Under one of its names, of which the first is `root`. The result refers to this object.
  [[nodiscard]] ServedModel served(const std::string& name, const std::string& root,
                                   int64_t created_unix_s) const;
  [[nodiscard]] const std::string& digest() const { return digest_; }

 private:
  DescribedModel() = default;

  std::vector<std::string> names_;
  std::string digest_;
  uint32_t context_tokens_ = 0;
  uint32_t embedding_width_ = 0;
  std::unique_ptr<GgufFile> file_;
  std::unique_ptr<Tokenizer> tokenizer_;
  ChatTemplates templates_;
  RequestTemplates request_templates_ = RequestTemplates::kRefused;
};

}  // namespace troupe
