#pragma once
// Where a served model's chat templates come from: its file, or one that the user gives.

#include <memory>
#include <optional>
#include <string>

#include "actors/gateway/openai/chat_prompt.h"
#include "base/config/settings.h"
#include "engine/chat_template/chat_template.h"
#include "engine/model/gguf_file.h"
#include "troupe/status.h"

namespace troupe {

struct ChatTemplateOptions {
  std::string file;              // empty: the model's own
  bool trusts_requests = false;  // requests may bring their own

  [[nodiscard]] RequestTemplates request_templates() const {
    return trusts_requests ? RequestTemplates::kTrusted : RequestTemplates::kRefused;
  }
};

// --chat-template and --trust-request-chat-template, for programs that answer chats.
void add_chat_template_settings(Settings& settings, ChatTemplateOptions& options);

// Immutable. May hold no template at all.
class ChatTemplates final {
 public:
  ChatTemplates() = default;
  // tokenizer.chat_template and, for conversations with tools, tokenizer.chat_template.tool_use.
  // The errors name the file, the key and the template's line.
  [[nodiscard]] static Result<ChatTemplates> of(const GgufFile& file);
  // A text file, for all conversations. The errors name it and the line.
  [[nodiscard]] static Result<ChatTemplates> from_file(const std::string& path);
  // Whether the user's file, if there is one, could be used: to be asked before a model is loaded.
  [[nodiscard]] static Status check(const ChatTemplateOptions& options);
  // What the options say: the user's file, then the model's is not even read; or `file`'s own.
  [[nodiscard]] static Result<ChatTemplates> choose(const ChatTemplateOptions& options,
                                                    const GgufFile& file);

  // Null: there is none.
  [[nodiscard]] const ChatTemplate* plain() const { return plain_ ? &*plain_ : nullptr; }
  // Null: plain() does for tools too.
  [[nodiscard]] const ChatTemplate* with_tools() const {
    return with_tools_ ? &*with_tools_ : nullptr;
  }

 private:
  std::optional<ChatTemplate> plain_, with_tools_;
};

}  // namespace troupe
