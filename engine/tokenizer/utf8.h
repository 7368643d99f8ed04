#pragma once
// UTF-8 as The Unicode Standard (section 3.9, table 3-7) defines it: no surrogates, nothing above
// U+10FFFF, no overlong forms.

#include <cstddef>
#include <optional>
#include <string_view>

namespace troupe {

// U+FFFD, what stands for bytes that are not UTF-8.
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

enum class Utf8Kind {
  kCharacter,   // `size` bytes are one whole character
  kIncomplete,  // all the bytes there are begin a character that more bytes could complete
  kInvalid,     // `size` bytes are certainly no character: a maximal subpart, one replacement
};

struct Utf8Prefix {
  Utf8Kind kind = Utf8Kind::kInvalid;
  size_t size = 0;
  bool operator==(const Utf8Prefix&) const = default;
};

// What `bytes`, which must not be empty, begins with.
[[nodiscard]] Utf8Prefix utf8_prefix(std::string_view bytes);

// The offset of the first byte that belongs to no whole character; empty when all is UTF-8.
[[nodiscard]] std::optional<size_t> find_invalid_utf8(std::string_view bytes);

}  // namespace troupe
