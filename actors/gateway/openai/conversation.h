#pragma once
// The messages of a request in the form that the model's chat template takes.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "actors/gateway/openai/chat_prompt.h"
#include "engine/chat_template/chat_context.h"
#include "engine/chat_template/template_habits.h"
#include "engine/chat_template/template_traits.h"
#include "troupe/status.h"

namespace troupe {

// Whether the template can express the conversation at all. kUnsupported says what it drops, with
// the path of the field as param: better no answer than one to half a conversation.
[[nodiscard]] Status check_expressible(const nlohmann::ordered_json& messages,
                                       const nlohmann::ordered_json& tools,
                                       const nlohmann::ordered_json& template_kwargs,
                                       const TemplateTraits& traits, const TemplateHabits& habits);

// `messages` as parse_messages() returns them. What differs between templates is decided here:
// content as text or parts, none or "", arguments as a dict or as text, developer or system, the
// field that carries reasoning.
[[nodiscard]] Result<std::vector<ChatMessage>> to_conversation(
    const nlohmann::ordered_json& messages, const TemplateTraits& traits,
    const TemplateHabits& habits);

// The bytes of content in the messages.
[[nodiscard]] size_t content_bytes(const nlohmann::ordered_json& messages);

}  // namespace troupe
