#pragma once
// The variables that chat templates expect, from plain structs.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/chat_template/value.h"

namespace troupe {

// One message as a client sent it. All of it is data.
struct ChatMessage {
  std::string role;
  // Text, a list of parts for templates that take them, or none for templates that ask for that.
  // Absent becomes "" in the context, so that no template prints "None" for an answer that only
  // called tools.
  TemplateValue content;
  std::optional<std::string> name;
  std::optional<std::string> tool_call_id;
  // A list of calls; an empty one is as if absent. Most templates want function.arguments as a
  // dict, not as the JSON text that OpenAI's API carries: parse it first.
  TemplateValue tool_calls;
  // Further fields of the message, e.g. "reasoning_content".
  std::vector<std::pair<std::string, TemplateValue>> extra;
};

struct ChatContextOptions {
  bool add_generation_prompt = true;
  // Template text: they come from the model file. Absent: undefined in the template.
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
  // A list, or undefined where there are none (an empty list counts as none).
  TemplateValue tools;
  // chat_template_kwargs, e.g. "enable_thinking". They come last and override what stands above.
  std::vector<std::pair<std::string, TemplateValue>> extra;
};

// The context of ChatTemplate::render: messages, add_generation_prompt, bos_token, eos_token, tools
// (none if there are none), documents (none, as in transformers without them) and the extras.
[[nodiscard]] TemplateValue make_chat_context(const std::vector<ChatMessage>& messages,
                                              const ChatContextOptions& options);

}  // namespace troupe
