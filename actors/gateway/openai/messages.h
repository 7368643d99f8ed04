#pragma once
// The conversation of a chat request, checked and normalised for the chat template.

#include <nlohmann/json.hpp>
#include <string_view>

#include "troupe/status.h"

namespace troupe {

// Takes the value of `messages` and returns an array of objects with
//   role:         system, user, assistant or tool; "developer" has become "system"
//   content:      always a string; text parts are joined by newlines, null and absent (allowed for
//                 assistant messages with tool calls) have become ""
//   name, tool_call_id: strings, where given
//   tool_calls:   where not empty; function.arguments is an object where its text was one
// kInvalidArgument names the first fault by its path, e.g. messages[2].content[0].text.
[[nodiscard]] Result<nlohmann::ordered_json> parse_messages(const nlohmann::ordered_json* value);

}  // namespace troupe
