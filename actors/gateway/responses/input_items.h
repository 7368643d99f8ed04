#pragma once
// The input of /v1/responses as the messages of a chat.

#include <nlohmann/json.hpp>
#include <string>

#include "actors/gateway/openai/path_renames.h"
#include "troupe/status.h"

namespace troupe {

// Appends the value of `input`, a string or an array of items, to `messages`, and to `renames`
// where each of them came from. Calls that follow an assistant's message become part of it, and
// reasoning becomes part of the assistant's message that follows. The chat's own parser checks what
// the messages say. kUnsupported: items of built-in tools, references, images and files.
[[nodiscard]] Status append_input(const nlohmann::ordered_json& input,
                                  nlohmann::ordered_json& messages, PathRenames& renames);

// The input as GET /v1/responses/{id}/input_items lists it: an array of items, each with an id that
// begins with its kind and ends with `id_tail` and its number, where the client gave none.
[[nodiscard]] nlohmann::ordered_json listed_input(const nlohmann::ordered_json& input,
                                                  const std::string& id_tail);

}  // namespace troupe
