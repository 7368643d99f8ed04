#pragma once
// The grammar that makes a model's calls valid: names that were offered, arguments by their schema,
// in the model's own format.

#include "actors/gateway/tools/tool_format.h"
#include "actors/gateway/tools/tool_request.h"
#include "engine/grammar/grammar_spec.h"

namespace troupe {

// Whether calls of the tool are held to its schema: where the client forces a call, or asked for
// strictness. Else to any object: a schema that no grammar can express must not end a conversation
// in which the model may never call the tool.
[[nodiscard]] bool holds_to_schema(const ToolRequest& request, const Tool& tool);

// Whether the answer ends with its first call.
[[nodiscard]] bool is_one_call(const ToolRequest& request);

// What the answer may be, with what `demand` (of a response format; or empty) asks of one without
// calls. Behind the reasoning, which is free, if the model reasons:
//   kNone            the demand
//   kRequired,       calls and nothing else
//   kNamed
//   kAuto            free text, in which what begins as a call goes on as one; or with a demand,
//                    either calls or what it asks for
// Empty where nothing is forced. The parts of the request that it is made of have been checked.
[[nodiscard]] GrammarSpec answer_grammar(const ToolRequest& request, const GrammarSpec& demand,
                                         const AnswerFormat& format, PromptEnd prompt_end);

}  // namespace troupe
