#pragma once
// How a conversation becomes a prompt, besides its messages.

#include <nlohmann/json.hpp>
#include <string>

#include "actors/gateway/openai/field_reader.h"
#include "troupe/status.h"

namespace troupe {

// What the chat template is given beside the messages.
struct ChatPromptOptions {
  // The prompt ends where the assistant's answer begins.
  bool add_generation_prompt = true;
  // The prompt ends inside the last message, which is the assistant's: the answer goes on with it.
  // Never together with add_generation_prompt.
  bool continue_final_message = false;
  // The template's variable `tools`: a non-empty array in the form of OpenAI's API, or null.
  nlohmann::ordered_json tools;
  // Further variables of the template, e.g. enable_thinking: an object, or null.
  nlohmann::ordered_json template_kwargs;
  // The template's variable of this name; empty: not given.
  std::string reasoning_effort;
  // Renders with this instead of the model's template; empty: the model's. Its text can become
  // control tokens, so it is as good as a raw prompt.
  std::string chat_template;
};

// Whether requests may bring a template of their own.
enum class RequestTemplates { kRefused, kTrusted };

// Reads add_generation_prompt, continue_final_message, chat_template_kwargs, reasoning_effort and
// chat_template; `tools` is left to the caller, who knows what tool_choice makes of them.
[[nodiscard]] Result<ChatPromptOptions> parse_chat_prompt(const FieldReader& fields,
                                                          RequestTemplates templates);

}  // namespace troupe
