#pragma once
// A model as a worker described it: enough to tokenise and to apply the chat template.

#include <memory>
#include <optional>
#include <string>

#include "actors/gateway/openai/served_model.h"
#include "actors/wire/messages.h"
#include "engine/chat_template/chat_template.h"
#include "engine/model/gguf_file.h"
#include "engine/tokenizer/tokenizer.h"

namespace troupe {

// The file's own template; nothing where it has none. The errors name the file.
[[nodiscard]] Result<std::optional<ChatTemplate>> chat_template_of(const GgufFile& file);

class DescribedModel final {
 public:
  // kDataLoss, kUnsupported: as of GgufFile, Tokenizer and ChatTemplate; the bytes are a peer's.
  [[nodiscard]] static Result<std::shared_ptr<const DescribedModel>> make(wire::Described message);
  DescribedModel(const DescribedModel&) = delete;
  DescribedModel& operator=(const DescribedModel&) = delete;

  // `name` as requests say it; empty: as the worker says. The result refers to this object.
  [[nodiscard]] ServedModel served(const std::string& name, int64_t created_unix_s) const;
  [[nodiscard]] const std::string& digest() const { return digest_; }

 private:
  DescribedModel() = default;

  std::string name_, digest_;
  uint32_t context_tokens_ = 0;
  uint32_t embedding_width_ = 0;
  std::unique_ptr<GgufFile> file_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::optional<ChatTemplate> chat_template_;
};

}  // namespace troupe
