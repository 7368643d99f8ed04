#pragma once
#include <string_view>

namespace troupe {

// U+2581: how SentencePiece's vocabularies spell a space.
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

}  // namespace troupe
