#pragma once
// JSON Schema to grammar rules, for the keywords that docs/structured-output.md lists; any other
// one that could change what is valid is refused by name.

#include <string_view>

#include "engine/grammar/rules.h"
#include "troupe/status.h"

namespace troupe {

// What the rules generate is valid against the schema (draft 2020-12), though not everything valid
// is generated: declared properties come in the schema's order, undeclared ones only where the
// schema names `additionalProperties` or declares none. kInvalidArgument: `param` is the place in
// the schema ("properties.age.minimum", empty at the top), the message names it as a path from `$`.
// The text is JSON; nesting is bounded here, whatever the caller has checked.
[[nodiscard]] Result<Rules> rules_of_json_schema(std::string_view schema);

}  // namespace troupe
