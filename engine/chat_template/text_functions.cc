#include "engine/chat_template/text_functions.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "engine/chat_template/unicode.h"

namespace troupe::chat_template {
namespace {

constexpr size_t kNowhere = std::string_view::npos;

bool is_in_set(std::string_view characters, std::string_view one) {
  for (size_t at = 0; at < characters.size();) {
    const size_t bytes = decode(characters, at).bytes;
    if (characters.substr(at, bytes) == one) return true;
    at += bytes;
  }
  return false;
}

// Where the last character of text starts; text is not empty.
size_t last_character(std::string_view text) {
  size_t start = text.size() - 1;
  while (start > 0 && text.size() - start < 4 &&
         (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80)
    --start;
  // Only a whole code point that ends exactly here counts; a bad byte stands alone.
  return start + decode(text, start).bytes == text.size() ? start : text.size() - 1;
}

// str.splitlines() knows these besides \r\n.
bool is_line_end(char32_t value) {
  return (value >= 0x0A && value <= 0x0D) || (value >= 0x1C && value <= 0x1E) || value == 0x85 ||
         value == 0x2028 || value == 0x2029;
}

// What upper and lower case make of one character that is not mapped one to one.
std::string_view upper_expansion(char32_t value) {
  switch (value) {
    case 0xDF:
      return "SS";
    case 0x149:
      return "\u02BCN";
    default:
      return {};
  }
}

}  // namespace

size_t find_first(std::string_view text, std::string_view needle, size_t from) {
  if (from > text.size()) return kNowhere;
  // memmem is linear whatever the needle; std::string_view::find is not.
  const void* found = memmem(text.data() + from, text.size() - from, needle.data(), needle.size());
  if (found == nullptr) return kNowhere;
  return static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

size_t find_last(std::string_view text, std::string_view needle) {
  // The first occurrence in the mirror image, to stay linear.
  const std::string mirrored(text.rbegin(), text.rend());
  const std::string mirrored_needle(needle.rbegin(), needle.rend());
  const size_t found = find_first(mirrored, mirrored_needle);
  return found == kNowhere ? kNowhere : text.size() - found - needle.size();
}

Result<TemplateText> strip(Budget& budget, const TemplateText& text, Side side,
                           std::optional<std::string_view> characters) {
  const std::string_view bytes = text.bytes();
  TROUPE_RETURN_IF_ERROR(budget.copy(text));
  size_t begin = 0;
  size_t end = bytes.size();
  if (!characters) {
    if (side != Side::kRight) begin = leading_space_bytes(bytes);
    if (side != Side::kLeft) end -= trailing_space_bytes(bytes.substr(begin));
    return text.slice(begin, end);
  }
  while (side != Side::kRight && begin < end) {
    const size_t size = decode(bytes, begin).bytes;
    TROUPE_RETURN_IF_ERROR(budget.work(characters->size()));
    if (!is_in_set(*characters, bytes.substr(begin, size))) break;
    begin += size;
  }
  while (side != Side::kLeft && begin < end) {
    const size_t last = begin + last_character(bytes.substr(begin, end - begin));
    TROUPE_RETURN_IF_ERROR(budget.work(characters->size()));
    if (!is_in_set(*characters, bytes.substr(last, end - last))) break;
    end = last;
  }
  return text.slice(begin, end);
}

Result<TemplateText> replace(Budget& budget, const TemplateText& text, std::string_view from,
                             const TemplateText& to, int64_t max) {
  const std::string_view bytes = text.bytes();
  TROUPE_RETURN_IF_ERROR(budget.copy(text));
  TemplateText result;
  size_t copied = 0;
  size_t at = 0;
  while (max != 0) {
    size_t found = find_first(bytes, from, at);
    if (found == kNowhere) break;
    TROUPE_RETURN_IF_ERROR(budget.steps(1));
    TROUPE_RETURN_IF_ERROR(budget.grow(result.size(), found - copied));
    result.append_slice(text, copied, found);
    TROUPE_RETURN_IF_ERROR(budget.append(result, to));
    result.append(to);
    copied = found + from.size();
    at = copied;
    if (max > 0) --max;
    if (from.empty()) {
      if (at == bytes.size()) break;
      at += decode(bytes, at).bytes;
    }
  }
  TROUPE_RETURN_IF_ERROR(budget.grow(result.size(), bytes.size() - copied));
  result.append_slice(text, copied, bytes.size());
  return result;
}

Result<std::vector<TemplateText>> split(Budget& budget, const TemplateText& text,
                                        std::string_view separator, int64_t max, Side from) {
  TROUPE_ASSERT(!separator.empty(), text.size());
  const std::string_view bytes = text.bytes();
  TROUPE_RETURN_IF_ERROR(budget.copy(text));
  std::vector<size_t> cuts;
  if (from == Side::kRight) {
    size_t end = bytes.size();
    while (max != 0) {
      // find_last mirrors what it searches, so each cut costs what is left.
      TROUPE_RETURN_IF_ERROR(budget.work(end));
      const size_t found = find_last(bytes.substr(0, end), separator);
      if (found == kNowhere) break;
      cuts.push_back(found);
      end = found;
      if (max > 0) --max;
    }
    std::reverse(cuts.begin(), cuts.end());
  } else {
    for (size_t at = 0; max != 0;) {
      const size_t found = find_first(bytes, separator, at);
      if (found == kNowhere) break;
      cuts.push_back(found);
      at = found + separator.size();
      if (max > 0) --max;
    }
  }
  TROUPE_RETURN_IF_ERROR(budget.elements(cuts.size() + 1));
  std::vector<TemplateText> parts;
  size_t begin = 0;
  for (const size_t cut : cuts) {
    parts.push_back(text.slice(begin, cut));
    begin = cut + separator.size();
  }
  parts.push_back(text.slice(begin, bytes.size()));
  return parts;
}

Result<std::vector<TemplateText>> split_at_space(Budget& budget, const TemplateText& text,
                                                 int64_t max, Side from) {
  const std::string_view bytes = text.bytes();
  TROUPE_RETURN_IF_ERROR(budget.copy(text));
  std::vector<std::pair<size_t, size_t>> words;
  for (size_t at = 0; at < bytes.size();) {
    const CodePoint point = decode(bytes, at);
    if (is_space(point.value)) {
      at += point.bytes;
      continue;
    }
    const size_t begin = at;
    while (at < bytes.size() && !is_space(decode(bytes, at).value)) at += decode(bytes, at).bytes;
    words.emplace_back(begin, at);
  }
  // Beyond `max` cuts the words of one end stay together, with the space between them.
  const size_t count =
      max < 0 ? words.size() : std::min(words.size(), static_cast<size_t>(max) + 1);
  TROUPE_RETURN_IF_ERROR(budget.elements(count));
  if (count < words.size() && from == Side::kRight) {
    const size_t joined = words.size() - count;
    words[joined].first = 0;
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(joined));
  } else if (count < words.size()) {
    words[count - 1].second = bytes.size();
    words.resize(count);
  }
  std::vector<TemplateText> parts;
  for (const auto& [begin, end] : words) parts.push_back(text.slice(begin, end));
  return parts;
}

Result<std::vector<TemplateText>> split_lines(Budget& budget, const TemplateText& text,
                                              LineEnds line_ends) {
  const std::string_view bytes = text.bytes();
  TROUPE_RETURN_IF_ERROR(budget.copy(text));
  std::vector<TemplateText> lines;
  size_t begin = 0;
  for (size_t at = 0; at < bytes.size();) {
    const CodePoint point = decode(bytes, at);
    const size_t end = at;
    at += point.bytes;
    if (!is_line_end(point.value)) continue;
    if (point.value == '\r' && at < bytes.size() && bytes[at] == '\n') ++at;
    TROUPE_RETURN_IF_ERROR(budget.elements(1));
    lines.push_back(text.slice(begin, line_ends == LineEnds::kKept ? at : end));
    begin = at;
  }
  if (begin < bytes.size()) lines.push_back(text.slice(begin, bytes.size()));
  return lines;
}

Result<TemplateText> reverse(Budget& budget, const TemplateText& text) {
  const std::string_view bytes = text.bytes();
  TROUPE_RETURN_IF_ERROR(budget.copy(text));
  TemplateText result;
  for (size_t end = bytes.size(); end > 0;) {
    TROUPE_RETURN_IF_ERROR(budget.steps(1));
    const size_t begin = last_character(bytes.substr(0, end));
    result.append_slice(text, begin, end);
    end = begin;
  }
  return result;
}

Result<TemplateText> change_case(Budget& budget, const TemplateText& text, Case wanted) {
  const std::string_view bytes = text.bytes();
  TROUPE_RETURN_IF_ERROR(budget.copy(text));
  TemplateText result;
  bool is_word_start = true;
  size_t at = 0;
  for (const TemplateText::Run& run : text.runs()) {
    std::string mapped;
    while (at < run.end) {
      const CodePoint point = decode(bytes, at);
      const bool upper = wanted == Case::kUpper || (wanted != Case::kLower && is_word_start);
      const std::string_view expansion = upper ? upper_expansion(point.value) : std::string_view();
      if (!expansion.empty()) {
        mapped += wanted == Case::kUpper ? expansion : point.value == 0xDF ? "Ss" : expansion;
      } else {
        append_utf8(mapped, upper ? to_upper(point.value) : to_lower(point.value));
      }
      if (wanted == Case::kTitle) {
        is_word_start = !is_cased(point.value);
      } else if (wanted == Case::kTitleFilter) {
        is_word_start =
            is_space(point.value) ||
            (point.value < 0x80 && std::string_view("-({[<").find(bytes[at]) != kNowhere);
      } else {
        is_word_start = false;
      }
      // A run that ends within a character (two origins) takes the whole of it.
      at += point.bytes;
    }
    result.append(mapped, run.origin);
  }
  return result;
}

}  // namespace troupe::chat_template
