#pragma once
// Tools, calls and their results as words, for models whose chat template cannot express them.

#include <nlohmann/json.hpp>

#include "actors/gateway/tools/tool_format.h"
#include "engine/chat_template/template_habits.h"

namespace troupe {

// Whether words are needed: the template drops something that this conversation has. `tools` as
// tools_for_template() returns them, null for none; `messages` as parse_messages() does.
[[nodiscard]] bool needs_tools_in_words(const nlohmann::ordered_json& messages,
                                        const nlohmann::ordered_json& tools,
                                        const TemplateHabits& habits);

// The messages with what the template would drop written into their text: tools and how to call
// them at the end of the system message (a new one if there is none; or the first message, if
// system messages are dropped as well), calls at the end of the assistant's, results as messages of
// the user. The calls are spelled in `format`, which is not kNone.
[[nodiscard]] nlohmann::ordered_json put_tools_in_words(nlohmann::ordered_json messages,
                                                        const nlohmann::ordered_json& tools,
                                                        ToolFormat format,
                                                        const TemplateHabits& habits);

}  // namespace troupe
