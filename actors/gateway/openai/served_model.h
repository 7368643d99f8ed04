#pragma once
// The model as the front ends see it.

#include <cstdint>
#include <string>

#include "engine/chat_template/chat_template.h"
#include "engine/tokenizer/tokenizer.h"

namespace troupe {

// The references outlive the value. Immutable.
struct ServedModel {
  std::string name;             // what requests must say in `model`
  uint32_t context_tokens = 0;  // prompt and output together
  int64_t created_unix_s = 0;   // for GET /v1/models
  const Tokenizer& tokenizer;
  const ChatTemplate* chat_template =
      nullptr;  // null: the model's file has none; chats are refused
};

}  // namespace troupe
