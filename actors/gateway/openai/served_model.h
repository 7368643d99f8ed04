#pragma once
// The model as the front ends see it.

#include <cstdint>
#include <optional>
#include <string>

#include "actors/gateway/openai/chat_prompt.h"
#include "actors/gateway/tools/tool_format.h"
#include "engine/chat_template/chat_template.h"
#include "engine/tokenizer/tokenizer.h"

namespace troupe {

// The references outlive the value. Immutable.
struct ServedModel {
  std::string name;             // what requests must say in `model`
  uint32_t context_tokens = 0;  // prompt and output together
  int64_t created_unix_s = 0;   // for GET /v1/models
  const Tokenizer& tokenizer;
  // Null: there is none; chats are refused.
  const ChatTemplate* chat_template = nullptr;
  // For conversations with tools; null: chat_template does for them too.
  const ChatTemplate* tool_template = nullptr;
  RequestTemplates request_templates = RequestTemplates::kRefused;
  // How the model calls tools and shows reasoning; nothing: as its template says.
  std::optional<ToolFormat> tool_format;
  std::optional<ReasoningFormat> reasoning_format;
  uint32_t embedding_width = 0;  // values of a vector of /v1/embeddings
  // Names the model itself, for routers and workers: its other names have the same digest.
  std::string digest = {};
  std::string root = {};  // the first of its names; empty: this one

  [[nodiscard]] const ChatTemplate* template_for(bool has_tools) const {
    return has_tools && tool_template != nullptr ? tool_template : chat_template;
  }
};

}  // namespace troupe
