#pragma once
// POST /v1/messages and /v1/messages/count_tokens of Anthropic's API: checked, and turned into a
// chat.

#include <span>
#include <string_view>

#include "actors/gateway/openai/known_fields.h"
#include "actors/gateway/openai/path_renames.h"
#include "actors/gateway/openai/request.h"

namespace troupe {

struct MessagesRequest {
  GenerationBody body;  // a chat with one choice
  PathRenames renames;  // for errors of what is done with the body later
};

// Errors as those of parse_chat_body(), with the client's paths.
[[nodiscard]] Result<MessagesRequest> parse_messages_body(std::string_view body,
                                                          std::span<const RequestRules> models);
// The same for counting, where max_tokens may be missing.
[[nodiscard]] Result<MessagesRequest> parse_count_body(std::string_view body,
                                                       std::span<const RequestRules> models);
[[nodiscard]] std::span<const KnownField> messages_fields();

}  // namespace troupe
