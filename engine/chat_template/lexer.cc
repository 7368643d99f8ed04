#include "engine/chat_template/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/assert.h"
#include "engine/chat_template/errors.h"
#include "engine/chat_template/string_literal.h"
#include "engine/chat_template/unicode.h"

namespace troupe::chat_template {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
// Bytes above ASCII may be letters of any script.
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_name_part(char c) {
  return is_name_start(c) || is_digit(c);
}

// All line ends become \n, and one at the very end goes: jinja2 does both.
std::string normalize_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t at = 0; at < source.size(); ++at) {
    if (source[at] != '\r') {
      out.push_back(source[at]);
    } else if (at + 1 == source.size() || source[at + 1] != '\n') {
      out.push_back('\n');
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)), rest_(source_) {}

  Result<std::vector<Token>> run();

 private:
  [[nodiscard]] bool starts_with(std::string_view text, size_t at = 0) const {
    return rest_.substr(std::min(at, rest_.size())).starts_with(text);
  }
  void advance(size_t bytes);
  void skip_space() { advance(leading_space_bytes(rest_)); }
  void emit(TokenKind kind, std::string text = {}) {
    tokens_.push_back({kind, std::move(text), line_});
  }

  [[nodiscard]] size_t find_tag() const;
  void emit_text(size_t bytes, char sign, bool is_print);
  // Bytes of "{% raw %}" with its signs at the front of the rest, 0 if it is something else.
  [[nodiscard]] size_t raw_tag_bytes(std::string_view name, size_t at) const;
  Status lex_raw(size_t tag_bytes);
  Status lex_comment();
  Status lex_tag(bool is_print);
  bool lex_tag_end(bool is_print);
  Status lex_token();
  Status lex_number();
  Status lex_string();
  Status lex_operator();
  void trim_newline() {
    if (starts_with("\n")) advance(1);
  }

  std::string source_;
  std::string_view rest_;
  int line_ = 1;
  // The last thing read ended a line, so white space before the next tag starts one.
  bool at_line_start_ = true;
  std::string open_brackets_;  // the closing ones that are due, innermost last
  std::vector<Token> tokens_;
};

void Lexer::advance(size_t bytes) {
  TROUPE_ASSERT(bytes <= rest_.size(), bytes, rest_.size());
  if (bytes == 0) return;
  line_ += static_cast<int>(std::count(rest_.begin(), rest_.begin() + bytes, '\n'));
  at_line_start_ = rest_[bytes - 1] == '\n';
  rest_.remove_prefix(bytes);
}

size_t Lexer::find_tag() const {
  for (size_t at = rest_.find('{'); at != std::string_view::npos; at = rest_.find('{', at + 1)) {
    if (at + 1 < rest_.size() && std::string_view("%{#").find(rest_[at + 1]) != rest_.npos) {
      return at;
    }
  }
  return std::string_view::npos;
}

// Emits the text before a tag that opens with `sign` ('-', '+' or neither), less the white space
// that the tag takes away, and steps over all of it.
void Lexer::emit_text(size_t bytes, char sign, bool is_print) {
  std::string_view text = rest_.substr(0, bytes);
  if (sign == '-') {
    text.remove_suffix(trailing_space_bytes(text));
  } else if (sign != '+' && !is_print) {
    const size_t line_begin = text.rfind('\n') + 1;  // 0 if there is none
    const std::string_view indent = text.substr(line_begin);
    const bool is_whole_line = line_begin > 0 || at_line_start_;
    if (is_whole_line && leading_space_bytes(indent) == indent.size()) {
      text.remove_suffix(indent.size());
    }
  }
  if (!text.empty()) emit(TokenKind::kText, std::string(text));
  advance(bytes);
}

size_t Lexer::raw_tag_bytes(std::string_view name, size_t at) const {
  size_t end = at + 2;
  const auto skip = [&] { end += leading_space_bytes(rest_.substr(end)); };
  if (!starts_with("{%", at)) return 0;
  if (starts_with("-", end) || starts_with("+", end)) ++end;
  skip();
  if (!starts_with(name, end)) return 0;
  end += name.size();
  skip();
  if (starts_with("-%}", end)) {
    end += 3;
    skip();
    return end - at;
  }
  // Only the closing tag takes '+' and the line end behind it.
  if (name == "endraw" && starts_with("+%}", end)) return end + 3 - at;
  if (!starts_with("%}", end)) return 0;
  end += 2;
  if (name == "endraw" && starts_with("\n", end)) ++end;
  return end - at;
}

Status Lexer::lex_raw(size_t tag_bytes) {
  const int line = line_;
  advance(tag_bytes);
  for (size_t at = rest_.find("{%"); at != std::string_view::npos; at = rest_.find("{%", at + 1)) {
    const size_t end_bytes = raw_tag_bytes("endraw", at);
    if (end_bytes == 0) continue;
    emit_text(at, rest_[at + 2], false);
    advance(end_bytes);
    return ok_status();
  }
  return syntax_error(line, "{% raw %} is not closed by {% endraw %}");
}

Status Lexer::lex_comment() {
  const int line = line_;
  advance(2);
  if (starts_with("-") || starts_with("+")) advance(1);
  const size_t end = rest_.find("#}");
  if (end == std::string_view::npos) return syntax_error(line, "{# is not closed by #}");
  const char sign = end > 0 ? rest_[end - 1] : '\0';
  advance(end + 2);
  if (sign == '-') {
    skip_space();
  } else if (sign != '+') {
    trim_newline();
  }
  return ok_status();
}

bool Lexer::lex_tag_end(bool is_print) {
  if (!open_brackets_.empty()) return false;
  const std::string_view end = is_print ? "}}" : "%}";
  const bool is_stripping = starts_with("-") && starts_with(end, 1);
  const bool is_keeping = !is_print && starts_with("+") && starts_with(end, 1);
  if (!is_stripping && !is_keeping && !starts_with(end)) return false;
  emit(is_print ? TokenKind::kPrintEnd : TokenKind::kBlockEnd);
  advance(is_stripping || is_keeping ? 3 : 2);
  if (is_stripping) {
    skip_space();
  } else if (!is_print && !is_keeping) {
    trim_newline();
  }
  return true;
}

Status Lexer::lex_tag(bool is_print) {
  const int line = line_;
  emit(is_print ? TokenKind::kPrintBegin : TokenKind::kBlockBegin);
  advance(2);
  if (starts_with("-") || starts_with("+")) advance(1);
  while (true) {
    skip_space();
    if (rest_.empty()) {
      return syntax_error(line, is_print ? "{{ is not closed by }}" : "{% is not closed by %}");
    }
    if (lex_tag_end(is_print)) return ok_status();
    TROUPE_RETURN_IF_ERROR(lex_token());
  }
}

Status Lexer::lex_token() {
  const char first = rest_.front();
  if (is_digit(first)) return lex_number();
  if (first == '"' || first == '\'') return lex_string();
  if (!is_name_start(first)) return lex_operator();
  size_t end = 1;
  while (end < rest_.size() && is_name_part(rest_[end])) ++end;
  emit(TokenKind::kName, std::string(rest_.substr(0, end)));
  advance(end);
  return ok_status();
}

Status Lexer::lex_number() {
  const bool is_after_dot = !tokens_.empty() && tokens_.back().is_operator(".");
  int base = 10;
  size_t end = 0;
  if (rest_[0] == '0' && rest_.size() > 1) {
    const char mark = static_cast<char>(rest_[1] | 0x20);
    base = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 10;
    if (base != 10) end = 2;
  }
  const size_t digits_begin = end;
  const auto take_digits = [&] {
    while (end < rest_.size() && (is_digit(rest_[end]) || rest_[end] == '_' ||
                                  (base == 16 && std::isxdigit(rest_[end]) != 0)))
      ++end;
  };
  take_digits();
  bool is_float = false;
  if (base == 10 && !is_after_dot) {
    if (end + 1 < rest_.size() && rest_[end] == '.' && is_digit(rest_[end + 1])) {
      is_float = true;
      ++end;
      take_digits();
    }
    size_t exponent = end;
    if (exponent < rest_.size() && (rest_[exponent] | 0x20) == 'e') {
      ++exponent;
      if (exponent < rest_.size() && (rest_[exponent] == '+' || rest_[exponent] == '-')) ++exponent;
      if (exponent < rest_.size() && is_digit(rest_[exponent])) {
        is_float = true;
        end = exponent;
        take_digits();
      }
    }
  }
  std::string digits(rest_.substr(digits_begin, end - digits_begin));
  std::erase(digits, '_');
  Token token{is_float ? TokenKind::kFloat : TokenKind::kInteger, digits, line_};
  const char* last = digits.data() + digits.size();
  const auto result = is_float ? std::from_chars(digits.data(), last, token.number)
                               : std::from_chars(digits.data(), last, token.integer, base);
  if (result.ec != std::errc() || result.ptr != last) {
    return syntax_error(line_,
                        "\"" + std::string(rest_.substr(0, end)) + "\" is no number of 64 bits");
  }
  tokens_.push_back(std::move(token));
  advance(end);
  return ok_status();
}

Status Lexer::lex_string() {
  const char quote = rest_.front();
  size_t end = 1;
  while (end < rest_.size() && rest_[end] != quote) end += rest_[end] == '\\' ? 2 : 1;
  if (end >= rest_.size()) return syntax_error(line_, "a string is not closed by its quote");
  TROUPE_ASSIGN_OR_RETURN(std::string text, unescape(rest_.substr(1, end - 1), line_));
  emit(TokenKind::kString, std::move(text));
  advance(end + 1);
  return ok_status();
}

Status Lexer::lex_operator() {
  static constexpr std::array<std::string_view, 27> kOperators = {
      "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]",
      "(",  ")",  "{",  "}",  ">",  "<",  "=", ".", ":", "|", ",", ";", "!"};
  for (const std::string_view sign : kOperators) {
    if (!starts_with(sign)) continue;
    if (const size_t open = std::string_view("([{").find(sign); open != std::string_view::npos) {
      open_brackets_.push_back(")]}"[open]);
    } else if (std::string_view(")]}").find(sign) != std::string_view::npos) {
      if (open_brackets_.empty() || open_brackets_.back() != sign[0]) {
        return syntax_error(line_, "\"" + std::string(sign) + "\" closes nothing");
      }
      open_brackets_.pop_back();
    }
    emit(TokenKind::kOperator, std::string(sign));
    advance(sign.size());
    return ok_status();
  }
  return syntax_error(line_, "unexpected character \"" + std::string(1, rest_.front()) + "\"");
}

Result<std::vector<Token>> Lexer::run() {
  while (!rest_.empty()) {
    const size_t at = find_tag();
    if (at == std::string_view::npos) {
      emit(TokenKind::kText, std::string(rest_));
      advance(rest_.size());
      break;
    }
    const char mark = rest_[at + 1];
    const char sign = at + 2 < rest_.size() ? rest_[at + 2] : '\0';
    emit_text(at, sign, mark == '{');
    if (mark == '#') {
      TROUPE_RETURN_IF_ERROR(lex_comment());
    } else if (const size_t raw_bytes = raw_tag_bytes("raw", 0); raw_bytes > 0) {
      TROUPE_RETURN_IF_ERROR(lex_raw(raw_bytes));
    } else {
      TROUPE_RETURN_IF_ERROR(lex_tag(mark == '{'));
    }
  }
  emit(TokenKind::kEnd);
  return std::move(tokens_);
}

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view source, const ChatTemplateLimits& limits) {
  if (source.size() > limits.source_bytes_max) {
    return invalid_argument("the chat template has " + std::to_string(source.size()) +
                            " bytes, more than source_bytes_max = " +
                            std::to_string(limits.source_bytes_max) + "; shorten it");
  }
  // Errors quote the template, and they end up in JSON.
  for (size_t at = 0; at < source.size();) {
    const CodePoint point = decode(source, at);
    if (point.value >= kBadByte) {
      return invalid_argument("the chat template is no UTF-8 at byte " + std::to_string(at));
    }
    at += point.bytes;
  }
  return Lexer(normalize_newlines(source)).run();
}

}  // namespace troupe::chat_template
