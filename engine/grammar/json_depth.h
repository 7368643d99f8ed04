#pragma once
#include <nlohmann/json.hpp>
#include <string_view>

#include "troupe/status.h"

namespace troupe {

// Parses JSON within grammar_limits.h: at most kTextBytesMax bytes, with the nesting of a schema
// (kDepthMax levels of subschemas, each of which takes two of JSON). Key order is kept.
// kInvalidArgument says what is wrong with `what` ("the JSON schema").
[[nodiscard]] Result<nlohmann::ordered_json> parse_bounded_json(std::string_view text,
                                                                std::string_view what);

}  // namespace troupe
