#pragma once
// The little of Unicode that templates need: positions count code points, and white space and
// letter case reach beyond ASCII.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::chat_template {

struct CodePoint {
  char32_t value;  // a byte that is no part of valid UTF-8 stands for itself, plus kBadByte
  size_t bytes;    // 1 to 4
};
inline constexpr char32_t kBadByte = 0x110000;

// The code point that starts at `at`; at < text.size().
[[nodiscard]] CodePoint decode(std::string_view text, size_t at);
[[nodiscard]] size_t code_point_count(std::string_view text);
// The byte offset of code point `index`, text.size() if there are not that many.
[[nodiscard]] size_t byte_offset(std::string_view text, size_t index);
// `value` is a code point outside the surrogates, or a bad byte.
void append_utf8(std::string& text, char32_t value);

// What Python's str.isspace() says.
[[nodiscard]] bool is_space(char32_t value);
// Bytes of white space at the start and at the end.
[[nodiscard]] size_t leading_space_bytes(std::string_view text);
[[nodiscard]] size_t trailing_space_bytes(std::string_view text);

// Simple (one to one) case mapping of Latin, Greek, Cyrillic and Armenian; other scripts with case
// are left as they are.
[[nodiscard]] char32_t to_upper(char32_t value);
[[nodiscard]] char32_t to_lower(char32_t value);
// Upper or lower case letter of the scripts above.
[[nodiscard]] bool is_cased(char32_t value);
// Letters as far as case is known, plus everything else above ASCII that is no white space: close
// enough for word boundaries.
[[nodiscard]] bool is_word(char32_t value);

}  // namespace troupe::chat_template
