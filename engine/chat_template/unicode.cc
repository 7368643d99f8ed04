#include "engine/chat_template/unicode.h"

#include "base/assert.h"

namespace troupe::chat_template {
namespace {

bool is_continuation(unsigned char byte) {
  return (byte & 0xC0) == 0x80;
}

bool in(char32_t value, char32_t first, char32_t last) {
  return value >= first && value <= last;
}

// Blocks in which capitals stand at even (or odd) places, each followed by its small letter.
bool is_pair_block(char32_t value, bool& capitals_are_odd) {
  capitals_are_odd = in(value, 0x139, 0x148) || in(value, 0x179, 0x17E) || in(value, 0x4C1, 0x4CE);
  if (capitals_are_odd) return true;
  if (in(value, 0x100, 0x137)) return value != 0x130 && value != 0x131;
  return in(value, 0x14A, 0x177) || in(value, 0x1DE, 0x1EF) || in(value, 0x1F8, 0x21F) ||
         in(value, 0x222, 0x233) || in(value, 0x460, 0x481) || in(value, 0x48A, 0x4BF) ||
         in(value, 0x4D0, 0x52F) || in(value, 0x1E00, 0x1E95) || in(value, 0x1EA0, 0x1EFF);
}

}  // namespace

CodePoint decode(std::string_view text, size_t at) {
  TROUPE_ASSERT(at < text.size(), at, text.size());
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) return {lead, 1};
  const CodePoint bad{kBadByte + lead, 1};
  const size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || at + bytes > text.size()) return bad;
  char32_t value = lead & (0x7F >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[at + i]);
    if (!is_continuation(next)) return bad;
    value = value << 6 | (next & 0x3F);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kSmallest[bytes] || value > 0x10FFFF || in(value, 0xD800, 0xDFFF)) return bad;
  return {value, bytes};
}

size_t code_point_count(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); at += decode(text, at).bytes) ++count;
  return count;
}

size_t byte_offset(std::string_view text, size_t index) {
  size_t at = 0;
  while (index > 0 && at < text.size()) {
    at += decode(text, at).bytes;
    --index;
  }
  return at;
}

void append_utf8(std::string& text, char32_t value) {
  const auto put = [&text](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (value >= kBadByte) {
    TROUPE_ASSERT(value - kBadByte <= 0xFF, static_cast<uint32_t>(value));
    put(value - kBadByte);
  } else if (value < 0x80) {
    put(value);
  } else if (value < 0x800) {
    put(0xC0 | value >> 6);
    put(0x80 | (value & 0x3F));
  } else if (value < 0x10000) {
    put(0xE0 | value >> 12);
    put(0x80 | (value >> 6 & 0x3F));
    put(0x80 | (value & 0x3F));
  } else {
    put(0xF0 | value >> 18);
    put(0x80 | (value >> 12 & 0x3F));
    put(0x80 | (value >> 6 & 0x3F));
    put(0x80 | (value & 0x3F));
  }
}

bool is_space(char32_t value) {
  return in(value, 0x09, 0x0D) || in(value, 0x1C, 0x20) || value == 0x85 || value == 0xA0 ||
         value == 0x1680 || in(value, 0x2000, 0x200A) || value == 0x2028 || value == 0x2029 ||
         value == 0x202F || value == 0x205F || value == 0x3000;
}

size_t leading_space_bytes(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const CodePoint point = decode(text, at);
    if (!is_space(point.value)) break;
    at += point.bytes;
  }
  return at;
}

size_t trailing_space_bytes(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    size_t start = end - 1;
    while (start > 0 && end - start < 4 && is_continuation(static_cast<unsigned char>(text[start])))
      --start;
    const CodePoint point = decode(text, start);
    if (start + point.bytes != end || !is_space(point.value)) break;
    end = start;
  }
  return text.size() - end;
}

char32_t to_upper(char32_t value) {
  if (in(value, 'a', 'z')) return value - 32;
  if (value < 0x80) return value;
  if (value == 0xB5) return 0x39C;
  if (value == 0xFF) return 0x178;
  if (in(value, 0xE0, 0xFE) && value != 0xF7) return value - 32;
  if (value == 0x131) return 'I';
  if (value == 0x17F) return 'S';
  bool odd = false;
  if (is_pair_block(value, odd)) return (value % 2 == 1) == odd ? value : value - 1;
  if (value == 0x3AC) return 0x386;
  if (in(value, 0x3AD, 0x3AF)) return value - 37;
  if (value == 0x3C2) return 0x3A3;
  if (in(value, 0x3B1, 0x3CB)) return value - 32;
  if (value == 0x3CC) return 0x38C;
  if (value == 0x3CD || value == 0x3CE) return value - 63;
  if (in(value, 0x430, 0x44F)) return value - 32;
  if (in(value, 0x450, 0x45F)) return value - 80;
  if (value == 0x4CF) return 0x4C0;
  if (in(value, 0x561, 0x586)) return value - 48;
  return value;
}

char32_t to_lower(char32_t value) {
  if (in(value, 'A', 'Z')) return value + 32;
  if (value < 0x80) return value;
  if (in(value, 0xC0, 0xDE) && value != 0xD7) return value + 32;
  if (value == 0x178) return 0xFF;
  bool odd = false;
  if (is_pair_block(value, odd)) return (value % 2 == 1) == odd ? value + 1 : value;
  if (value == 0x386) return 0x3AC;
  if (in(value, 0x388, 0x38A)) return value + 37;
  if (value == 0x38C) return 0x3CC;
  if (value == 0x38E || value == 0x38F) return value + 63;
  if (in(value, 0x391, 0x3AB) && value != 0x3A2) return value + 32;
  if (in(value, 0x410, 0x42F)) return value + 32;
  if (in(value, 0x400, 0x40F)) return value + 80;
  if (value == 0x4C0) return 0x4CF;
  if (in(value, 0x531, 0x556)) return value + 48;
  return value;
}

bool is_cased(char32_t value) {
  return to_upper(value) != value || to_lower(value) != value || value == 0xDF;
}

bool is_word(char32_t value) {
  if (value < 0x80) {
    return in(value, '0', '9') || in(value, 'a', 'z') || in(value, 'A', 'Z') || value == '_';
  }
  return value < kBadByte && !is_space(value);
}

}  // namespace troupe::chat_template
