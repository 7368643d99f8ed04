#pragma once
// Reads foreign JSON strictly and within bounds.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "troupe/status.h"

namespace troupe {

// Parses one JSON text. Refused with kInvalidArgument, each naming the place: syntax errors, NaN
// and infinities, numbers beyond double, ill-formed UTF-8, lone surrogates, more than kJsonDepthMax
// levels, a key that occurs twice in one object (which of the two counts would be anybody's guess),
// anything after the text. `param` of the error is the path of the value ("messages[0].content"),
// or empty at the top. Key order is kept. Objects are built in O(keys log keys).
[[nodiscard]] Result<nlohmann::ordered_json> parse_json(std::string_view text);

// A short rendering of a value for error texts: valid UTF-8, at most kExcerptBytesMax bytes. Never
// walks more of the value than it shows.
[[nodiscard]] std::string json_excerpt(const nlohmann::ordered_json& value);

}  // namespace troupe
