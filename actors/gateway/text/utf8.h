#pragma once
// UTF-8 at the edge: what comes in is checked, what goes out is always valid.

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe {

// Bytes of the longest prefix of `text` that is well-formed UTF-8 (Unicode 15, table 3-7: no
// overlong forms, no surrogates, nothing above U+10FFFF).
[[nodiscard]] size_t valid_utf8_prefix(std::string_view text);
[[nodiscard]] bool is_valid_utf8(std::string_view text);

// Each maximal ill-formed part becomes one U+FFFD, as the WHATWG decoder does it.
[[nodiscard]] std::string replace_invalid_utf8(std::string_view text);

// For error texts: ill-formed and control bytes as \xNN, at most `bytes_max` bytes of result, cut
// at a code point boundary and then ended by "...".
[[nodiscard]] std::string printable_excerpt(std::string_view text, size_t bytes_max);

// Code points of a well-formed text.
[[nodiscard]] size_t count_code_points(std::string_view text);

// Appends `text` (well-formed) as a JSON string with its quotes.
void append_json_string(std::string& out, std::string_view text);

}  // namespace troupe
