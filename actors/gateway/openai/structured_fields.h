#pragma once
// What a request body demands of the form of its answer.

#include "actors/gateway/openai/field_reader.h"
#include "engine/grammar/grammar_spec.h"
#include "troupe/status.h"

namespace troupe {

// OpenAI's `response_format`, vLLM's `structured_outputs` and its older `guided_json`,
// `guided_regex`, `guided_choice` and `guided_grammar`. At most one demand; without any, `out`
// stays as it is. The demand is checked here (engine/grammar/check_grammar.h), so that one that
// cannot be met is an error before anything is queued. kInvalidArgument: `param` is the place of
// the fault
// ("response_format.json_schema.schema.properties.age.minimum").
[[nodiscard]] Status parse_structured_fields(const FieldReader& fields, GrammarSpec& out);

}  // namespace troupe
