#include "engine/model/printable.h"

#include <cstdint>
#include <cstdio>

namespace troupe {
namespace {

struct Character {
  uint32_t code = 0;
  size_t length = 0;  // 0: not valid UTF-8
};

// The well-formed sequences of the Unicode standard, table 3-7: no overlong forms, no surrogates.
Character decode(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(text[i])); };
  const uint32_t lead = at(0);
  if (lead < 0x80) return {lead, 1};
  size_t length = 0;
  if (lead >= 0xC2 && lead <= 0xDF) length = 2;
  if (lead >= 0xE0 && lead <= 0xEF) length = 3;
  if (lead >= 0xF0 && lead <= 0xF4) length = 4;
  if (length == 0 || length > text.size()) return {};
  uint32_t code = lead & (0x7FU >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xC0U) != 0x80U) return {};
    code = (code << 6U) | (at(i) & 0x3FU);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (overlong || surrogate || code > 0x10FFFF) return {};
  return {code, length};
}

// Characters that would move the cursor, break the line or turn the reading direction.
bool hidden(uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code <= 0x9F) || (code >= 0x200B && code <= 0x200F) ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2060 && code <= 0x206F) ||
         code == 0xFEFF || (code >= 0xE0000 && code <= 0xE0FFF);
}

void append_escape(std::string& out, const char* format, uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, format, value);
  out += text;
}

}  // namespace

std::string printable(std::string_view bytes, size_t bytes_max) {
  std::string out;
  size_t at = 0;
  while (at < bytes.size()) {
    const Character c = decode(bytes.substr(at));
    const size_t length = c.length == 0 ? 1 : c.length;
    if (at + length > bytes_max) {
      out += "... (" + std::to_string(bytes.size()) + " bytes)";
      break;
    }
    if (c.length == 0) {
      append_escape(out, "\\x%02x", static_cast<uint8_t>(bytes[at]));
    } else if (c.code == '\n') {
      out += "\\n";
    } else if (c.code == '\t') {
      out += "\\t";
    } else if (c.code == '\r') {
      out += "\\r";
    } else if (c.code == '\\') {
      out += "\\\\";
    } else if (hidden(c.code)) {
      append_escape(out, "\\u{%x}", c.code);
    } else {
      out.append(bytes.substr(at, length));
    }
    at += length;
  }
  return out;
}

std::string quoted(std::string_view bytes) {
  return "'" + printable(bytes, 80) + "'";
}

}  // namespace troupe
