#include "engine/grammar/code_points.h"

#include <algorithm>

#include "base/assert.h"

namespace troupe {
namespace {

constexpr uint32_t kLast = 0x10FFFF;
constexpr uint32_t kSurrogateFirst = 0xD800;
constexpr uint32_t kSurrogateLast = 0xDFFF;

}  // namespace

CodePointSet::CodePointSet(std::initializer_list<Range> ranges) {
  for (const auto& [low, high] : ranges) add(low, high);
}

CodePointSet CodePointSet::of(std::string_view text) {
  std::vector<uint32_t> code_points;
  const bool is_utf8 = decode_utf8(text, code_points);
  TROUPE_ASSERT(is_utf8, text.size());
  CodePointSet set;
  for (const uint32_t code_point : code_points) set.add(code_point, code_point);
  return set;
}

void CodePointSet::add(uint32_t low, uint32_t high) {
  TROUPE_ASSERT(low <= high && high <= kLast, low, high);
  if (low == 0) low = 1;
  if (low <= kSurrogateLast && high >= kSurrogateFirst) {
    if (low < kSurrogateFirst) add(low, kSurrogateFirst - 1);
    if (high > kSurrogateLast) add(kSurrogateLast + 1, high);
    return;
  }
  if (low > high) return;
  auto first = std::find_if(ranges_.begin(), ranges_.end(),
                            [low](const Range& range) { return range.second + 1 >= low; });
  auto last = first;
  while (last != ranges_.end() && last->first <= high + 1) {
    low = std::min(low, last->first);
    high = std::max(high, last->second);
    ++last;
  }
  first = ranges_.erase(first, last);
  ranges_.insert(first, {low, high});
}

void CodePointSet::add(const CodePointSet& other) {
  for (const auto& [low, high] : other.ranges_) add(low, high);
}

CodePointSet CodePointSet::complement() const {
  CodePointSet result;
  uint32_t next = 1;
  for (const auto& [low, high] : ranges_) {
    if (next < low) result.add(next, low - 1);
    next = high + 1;
  }
  if (next <= kLast) result.add(next, kLast);
  return result;
}

CodePointSet CodePointSet::without(const CodePointSet& other) const {
  CodePointSet kept = complement();
  kept.add(other);
  return kept.complement();
}

bool CodePointSet::contains(uint32_t code_point) const {
  return std::any_of(ranges_.begin(), ranges_.end(), [code_point](const Range& range) {
    return range.first <= code_point && code_point <= range.second;
  });
}

// The well-formed sequences of the Unicode standard (table 3-7): no overlong form, no surrogate.
bool decode_utf8(std::string_view text, std::vector<uint32_t>& code_points) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  for (size_t i = 0; i < text.size();) {
    const uint32_t lead = byte(i);
    const size_t length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (length == 0 || lead > 0xF4 || i + length > text.size()) return false;
    uint32_t code_point = length == 1 ? lead : lead & (0xFFU >> (length + 1));
    for (size_t k = 1; k < length; ++k) {
      if ((byte(i + k) & 0xC0U) != 0x80U) return false;
      code_point = code_point << 6U | (byte(i + k) & 0x3FU);
    }
    if (length == 3 && code_point < 0x800) return false;
    if (length == 4 && code_point < 0x10000) return false;
    if (code_point > kLast) return false;
    if (code_point >= kSurrogateFirst && code_point <= kSurrogateLast) return false;
    code_points.push_back(code_point);
    i += length;
  }
  return true;
}

std::string utf8_prefix(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return std::string(text);
  size_t end = bytes_max;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0U) == 0x80U) --end;
  return std::string(text.substr(0, end)) + "…";
}

void append_utf8(uint32_t code_point, std::string& text) {
  TROUPE_ASSERT(code_point <= kLast, code_point);
  const auto put = [&text](uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) return put(code_point);
  if (code_point < 0x800) {
    put(0xC0U | code_point >> 6U);
  } else {
    if (code_point < 0x10000) {
      put(0xE0U | code_point >> 12U);
    } else {
      put(0xF0U | code_point >> 18U);
      put(0x80U | (code_point >> 12U & 0x3FU));
    }
    put(0x80U | (code_point >> 6U & 0x3FU));
  }
  put(0x80U | (code_point & 0x3FU));
}

}  // namespace troupe
