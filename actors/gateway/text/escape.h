#pragma once
// Foreign text on its way out: in error messages and in JSON.

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe {

// For error texts: bytes that are no UTF-8 and control characters as \xNN; at most `bytes_max`
// bytes of result, cut at a character and then ended by "...".
[[nodiscard]] std::string printable_excerpt(std::string_view text, size_t bytes_max);

// Characters (code points) of a UTF-8 text.
[[nodiscard]] size_t count_code_points(std::string_view text);

// Appends `text`, which is UTF-8, as a JSON string with its quotes.
void append_json_string(std::string& out, std::string_view text);

// Appends a finite number: the shortest text from which the same float is read.
void append_json_number(std::string& out, float value);

}  // namespace troupe
