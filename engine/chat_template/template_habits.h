#pragma once
// What a chat template makes of conversations, found by rendering a few small ones: templates
// differ in what they drop without a word and in the form in which they want the same thing.

#include "engine/chat_template/chat_context.h"
#include "engine/chat_template/chat_template.h"

namespace troupe {

// Where the template refuses a probe by an error, nothing is held against it: it will say itself
// what it does not like.
struct TemplateHabits {
  // These leave no trace in the prompt.
  bool drops_system = false;        // a system message that comes first
  bool drops_later_system = false;  // one that comes later
  bool drops_tools = false;         // the variable `tools`
  bool drops_tool_calls = false;    // an assistant's tool_calls
  bool drops_tool_results = false;  // a message of the role tool

  // An assistant's calls: function.arguments must be JSON text instead of a dict, and the content
  // of a message without text must be none instead of "".
  bool wants_arguments_as_text = false;
  bool wants_content_none = false;

  // In which forms the content of a message of this role comes out right.
  struct Content {
    bool takes_text = true;
    bool takes_parts = false;
  };
  Content system, user, assistant, tool;
};

// `options` holds the tokens that the template knows. About twenty renders of three messages,
// within limits that hold a hostile template to milliseconds each.
[[nodiscard]] TemplateHabits find_habits(const ChatTemplate& chat_template,
                                         const ChatContextOptions& options);

}  // namespace troupe
