#pragma once
#include <optional>
#include <string_view>

namespace troupe {

// The regular expression (regex.h) of a `format` of JSON Schema: what matches is valid by the
// format's own standard, though not everything valid matches. Nothing for formats not supported.
[[nodiscard]] std::optional<std::string_view> pattern_of_format(std::string_view format);
// Their names, for an error text.
[[nodiscard]] std::string_view format_names();

}  // namespace troupe
