#pragma once
// The conversation of a chat request, checked and normalised for the chat template.

#include <nlohmann/json.hpp>
#include <string_view>

#include "troupe/status.h"

namespace troupe {

// Takes the value of `messages` and returns an array of objects with
//   role:         system, developer, user, assistant or tool
//   content:      a string; or a non-empty array of {"type":"text","text":string}; or null, for
//                 assistant messages with tool calls or reasoning alone
//   name, tool_call_id: strings, where given; a tool message has tool_call_id
//   tool_calls:   where not empty: id, type "function", function.name, function.arguments, the last
//                 a string or an object as the client sent it
//   reasoning_content: a string, where an assistant message has it or `reasoning`
// kInvalidArgument names the first fault by its path, e.g. messages[2].content[0].text.
[[nodiscard]] Result<nlohmann::ordered_json> parse_messages(const nlohmann::ordered_json* value);

}  // namespace troupe
