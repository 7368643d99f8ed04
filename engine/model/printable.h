#pragma once
// Foreign bytes made fit for a terminal, a log line or an error message.

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe {

// One line of valid UTF-8 without control characters. Line feed, tab, carriage return and backslash
// are escaped as in C; other control and direction-changing characters as \u{202e}; bytes that are
// not valid UTF-8 as \xff. After `bytes_max` bytes of input it stops, on a character's boundary,
// and says how long the whole is.
[[nodiscard]] std::string printable(std::string_view bytes, size_t bytes_max);

// printable() between single quotes, cut at 80 bytes: how error messages name a key or tensor.
[[nodiscard]] std::string quoted(std::string_view bytes);

}  // namespace troupe
