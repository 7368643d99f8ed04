#pragma once
// A conversation of Anthropic's API as the messages of a chat.

#include <nlohmann/json.hpp>

#include "actors/gateway/openai/path_renames.h"
#include "troupe/status.h"

namespace troupe {

// `system` and `messages` are the values of these fields, or null. What a tool said becomes a
// message of its own, before the rest of its user's message. `renames` learns where each message
// came from. kUnsupported: images, documents and blocks of tools that Anthropic's servers run.
[[nodiscard]] Result<nlohmann::ordered_json> to_chat_messages(
    const nlohmann::ordered_json* system, const nlohmann::ordered_json* messages,
    PathRenames& renames);

}  // namespace troupe
