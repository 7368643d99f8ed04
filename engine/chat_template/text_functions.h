#pragma once
// What Python's str can do, on text that keeps its origins. Filters and methods are made of these.
// `budget` is charged for all of them; positions and counts are of code points.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/chat_template/budget.h"
#include "engine/chat_template/text.h"
#include "troupe/status.h"

namespace troupe::chat_template {

enum class Side : uint8_t { kLeft, kRight, kBoth };

// Without `characters` strips white space.
[[nodiscard]] Result<TemplateText> strip(Budget& budget, const TemplateText& text, Side side,
                                         std::optional<std::string_view> characters);
// At most `max` replacements, all of them if negative. An empty `from` matches between characters.
[[nodiscard]] Result<TemplateText> replace(Budget& budget, const TemplateText& text,
                                           std::string_view from, const TemplateText& to,
                                           int64_t max);
// At `separator`, which is not empty; at most `max` cuts, all if negative; kRight: from the end.
[[nodiscard]] Result<std::vector<TemplateText>> split(Budget& budget, const TemplateText& text,
                                                      std::string_view separator, int64_t max,
                                                      Side from);
// At runs of white space; no empty parts.
[[nodiscard]] Result<std::vector<TemplateText>> split_at_space(Budget& budget,
                                                               const TemplateText& text,
                                                               int64_t max, Side from);
enum class LineEnds : bool { kDropped, kKept };
[[nodiscard]] Result<std::vector<TemplateText>> split_lines(Budget& budget,
                                                            const TemplateText& text,
                                                            LineEnds line_ends);
[[nodiscard]] Result<TemplateText> reverse(Budget& budget, const TemplateText& text);

enum class Case : uint8_t {
  kUpper,
  kLower,
  kCapitalized,  // the first character upper, the rest lower
  kTitle,        // str.title(): every letter behind something that is none
  kTitleFilter,  // jinja2's |title: every character behind a space or one of - ( { [ <
};
[[nodiscard]] Result<TemplateText> change_case(Budget& budget, const TemplateText& text,
                                               Case wanted);

// Byte offset of the first (last) occurrence at or behind `from`, or npos.
[[nodiscard]] size_t find_first(std::string_view text, std::string_view needle, size_t from = 0);
[[nodiscard]] size_t find_last(std::string_view text, std::string_view needle);

}  // namespace troupe::chat_template
