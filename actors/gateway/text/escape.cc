#include "actors/gateway/text/escape.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "base/assert.h"
#include "engine/tokenizer/utf8.h"

namespace troupe {

namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

void append_hex(std::string& out, char c) {
  out += kHexDigits[static_cast<uint8_t>(c) >> 4];
  out += kHexDigits[static_cast<uint8_t>(c) & 15];
}

}  // namespace

std::string printable_excerpt(std::string_view text, size_t bytes_max) {
  constexpr std::string_view kEllipsis = "...";
  std::string out;
  size_t fits = 0;  // bytes of `out` behind which there is room for the ellipsis
  while (!text.empty()) {
    const Utf8Prefix prefix = utf8_prefix(text);
    const bool control = static_cast<uint8_t>(text[0]) < 0x20 || text[0] == 0x7F;
    if (prefix.kind == Utf8Kind::kCharacter && !control) {
      out += text.substr(0, prefix.size);
    } else {
      for (const char c : text.substr(0, prefix.size)) append_hex(out += "\\x", c);
    }
    text.remove_prefix(prefix.size);
    if (out.size() > bytes_max) {
      out.resize(fits);
      return out.append(kEllipsis);
    }
    if (out.size() + kEllipsis.size() <= bytes_max) fits = out.size();
  }
  return out;
}

size_t count_code_points(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  size_t run = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (static_cast<uint8_t>(c) >= 0x20 && c != '"' && c != '\\') continue;
    out.append(text, run, i - run);
    run = i + 1;
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        append_hex(out += "\\u00", c);
    }
  }
  out.append(text, run, text.size() - run);
  out += '"';
}

void append_json_number(std::string& out, float value) {
  TROUPE_ASSERT(std::isfinite(value), value);
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  TROUPE_ASSERT(result.ec == std::errc(), value);
  out.append(buffer, result.ptr);
}

}  // namespace troupe
