#include "engine/chat_template/string_literal.h"

#include <algorithm>
#include <charconv>

#include "engine/chat_template/errors.h"
#include "engine/chat_template/unicode.h"

namespace troupe::chat_template {
namespace {

// The character that a one-letter escape stands for, or 0.
char simple_escape(char letter) {
  constexpr std::string_view kLetters = "\\'\"abfnrtv";
  constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
  const size_t at = kLetters.find(letter);
  return at == std::string_view::npos ? '\0' : kMeanings[at];
}

Status append_number(std::string& out, std::string_view digits, int base, int line) {
  uint32_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  const bool is_valid = error == std::errc() && end == digits.data() + digits.size() &&
                        !digits.empty() && value < kBadByte && (value < 0xD800 || value > 0xDFFF);
  if (!is_valid) {
    return syntax_error(line, "a string has an escape that names no Unicode character");
  }
  append_utf8(out, value);
  return ok_status();
}

}  // namespace

Result<std::string> unescape(std::string_view quoted, int line) {
  std::string out;
  for (size_t at = 0; at < quoted.size(); ++at) {
    if (quoted[at] != '\\' || at + 1 == quoted.size()) {
      out.push_back(quoted[at]);
      continue;
    }
    const char letter = quoted[++at];
    if (const char meaning = simple_escape(letter); meaning != '\0') {
      out.push_back(meaning);
      continue;
    }
    size_t digits = 0;
    if (letter >= '0' && letter <= '7') {
      while (digits < 3 && at + digits < quoted.size() && quoted[at + digits] >= '0' &&
             quoted[at + digits] <= '7')
        ++digits;
      TROUPE_RETURN_IF_ERROR(append_number(out, quoted.substr(at, digits), 8, line));
      at += digits - 1;
    } else if (letter == 'x' || letter == 'u' || letter == 'U') {
      digits = letter == 'x' ? 2 : letter == 'u' ? 4 : 8;
      const std::string_view hex = quoted.substr(at + 1, digits);
      if (hex.size() < digits) return syntax_error(line, "a string ends within an escape");
      TROUPE_RETURN_IF_ERROR(append_number(out, hex, 16, line));
      at += digits;
    } else if (letter == 'N') {
      return unsupported(line, "the string escape \\N{...}");
    } else if (letter != '\n') {  // a backslash at the end of a line joins it to the next
      out.push_back('\\');
      out.push_back(letter);
    }
  }
  return out;
}

}  // namespace troupe::chat_template
