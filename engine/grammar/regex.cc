#include "engine/grammar/regex.h"

#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "base/assert.h"
#include "engine/grammar/json_rules.h"
#include "engine/grammar/limits.h"

namespace troupe {
namespace {

constexpr uint32_t kNoEscapesAbove = 1000;  // characters of a set

const CodePointSet& digits() {
  static const CodePointSet kSet{{'0', '9'}};
  return kSet;
}
const CodePointSet& word_characters() {
  static const CodePointSet kSet{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  return kSet;
}
// ECMAScript: WhiteSpace and LineTerminator.
const CodePointSet& spaces() {
  static const CodePointSet kSet{
      {0x09, 0x0D},     {0x20, 0x20},     {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
      {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
  return kSet;
}
const CodePointSet& line_ends() {
  static const CodePointSet kSet{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
  return kSet;
}

uint64_t size_of(const CodePointSet& set) {
  uint64_t size = 0;
  for (const auto& [low, high] : set.ranges()) size += high - low + 1;
  return size;
}

bool is_letter_or_digit(uint32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// One character of the set as it stands in a JSON string.
Expr in_json_string(const CodePointSet& set) {
  const CodePointSet special = plain_json_characters().complement();
  const CodePointSet plain = set.without(special);
  std::vector<Expr> parts;
  if (!plain.empty()) parts.push_back(one_of(plain));
  if (parts.empty() || size_of(set) <= kNoEscapesAbove) {
    const CodePointSet escaped = set.without(plain);
    for (const auto& [low, high] : escaped.ranges()) {
      for (uint32_t c = low; c <= high; ++c) {
        const std::string quoted = json_quoted(std::string(1, static_cast<char>(c)));
        parts.push_back(literal(quoted.substr(1, quoted.size() - 2)));
      }
    }
  }
  TROUPE_ASSERT(!parts.empty());
  return choice(std::move(parts));
}

class Parser {
 public:
  Parser(std::vector<uint32_t> text, RegexUse use) : text_(std::move(text)), use_(use) {}

  Result<Expr> parse() {
    TROUPE_ASSIGN_OR_RETURN(Expr expr, parse_alternatives(0));
    if (at_ < text_.size()) return wrong("')' closes no group");
    return expr;
  }

 private:
  [[nodiscard]] Status wrong(const std::string& what) const {
    return invalid_argument("at character " + std::to_string(at_ + 1) +
                            " of the regular expression: " + what);
  }
  [[nodiscard]] bool is_at(char c) const {
    return at_ < text_.size() && text_[at_] == static_cast<uint32_t>(c);
  }
  bool take(char c) {
    if (!is_at(c)) return false;
    ++at_;
    return true;
  }

  Result<Expr> parse_alternatives(uint32_t depth) {
    if (depth > grammar_limits::kDepthMax) {
      return wrong("groups are nested more than " + std::to_string(grammar_limits::kDepthMax) +
                   " deep");
    }
    std::vector<Expr> parts;
    do {
      TROUPE_ASSIGN_OR_RETURN(Expr part, parse_sequence(depth));
      parts.push_back(std::move(part));
    } while (take('|'));
    return choice(std::move(parts));
  }

  Result<Expr> parse_sequence(uint32_t depth) {
    if (is_at('^')) {
      if (depth > 0) return wrong("'^' is only possible at the start of the whole expression");
      ++at_;
    }
    std::vector<Expr> parts;
    while (at_ < text_.size() && !is_at('|') && !is_at(')')) {
      if (take('$')) {
        const bool is_last = depth == 0 && (at_ == text_.size() || is_at('|'));
        if (!is_last) return wrong("'$' is only possible at the end of the whole expression");
        break;
      }
      TROUPE_ASSIGN_OR_RETURN(Expr part, parse_atom(depth));
      TROUPE_ASSIGN_OR_RETURN(part, parse_quantifier(std::move(part)));
      parts.push_back(std::move(part));
    }
    return sequence(std::move(parts));
  }

  Expr matching(const CodePointSet& set) const {
    return use_ == RegexUse::kJsonString ? in_json_string(set) : one_of(set);
  }

  Result<Expr> parse_atom(uint32_t depth) {
    const uint32_t c = text_[at_];
    switch (c) {
      case '(':
        return parse_group(depth);
      case '[':
        return parse_class();
      case '.':
        ++at_;
        return matching(line_ends().complement());
      case '\\': {
        TROUPE_ASSIGN_OR_RETURN(const CodePointSet set, parse_escape(/*in_class=*/false));
        return matching(set);
      }
      case '*':
      case '+':
      case '?':
        return wrong("there is nothing to repeat");
      case '{':
        return wrong("'{' begins a repetition; write \\{ for the character");
      case '^':
        return wrong("'^' is only possible at the start of the whole expression");
      case 0:
        return wrong("the character U+0000 cannot be generated");
      default:
        ++at_;
        return matching({{c, c}});
    }
  }

  Result<Expr> parse_group(uint32_t depth) {
    TROUPE_ASSERT(is_at('('), at_);
    ++at_;
    if (take('?')) TROUPE_RETURN_IF_ERROR(parse_group_kind());
    TROUPE_ASSIGN_OR_RETURN(Expr inner, parse_alternatives(depth + 1));
    if (!take(')')) return wrong("a group is not closed");
    return inner;
  }

  Status parse_group_kind() {
    if (take(':')) return ok_status();
    if (is_at('=') || is_at('!')) return wrong("lookahead is not supported");
    const bool python = take('P');
    if (!take('<')) {
      return wrong(python ? "back-references are not supported"
                          : "flags and conditions, (?…), are not supported");
    }
    if (is_at('=') || is_at('!')) return wrong("lookbehind is not supported");
    const size_t start = at_;
    while (at_ < text_.size() && (is_letter_or_digit(text_[at_]) || is_at('_'))) ++at_;
    if (at_ == start || !take('>')) return wrong("the group's name is not one");
    return ok_status();
  }

  Result<Expr> parse_class() {
    ++at_;
    const bool is_negated = take('^');
    CodePointSet set;
    while (!is_at(']')) {
      if (at_ >= text_.size()) return wrong("a class is not closed");
      TROUPE_ASSIGN_OR_RETURN(const CodePointSet low, parse_class_part());
      const bool is_range = is_at('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']';
      if (!is_range) {
        set.add(low);
        continue;
      }
      ++at_;
      TROUPE_ASSIGN_OR_RETURN(const CodePointSet high, parse_class_part());
      if (size_of(low) != 1 || size_of(high) != 1)
        return wrong("a range has to go from one character to another");
      const uint32_t from = low.ranges()[0].first;
      const uint32_t to = high.ranges()[0].first;
      if (from > to) return wrong("a range goes backwards");
      set.add(from, to);
    }
    ++at_;
    if (is_negated) set = set.complement();
    if (set.empty()) return wrong("a class matches no character");
    return matching(set);
  }

  Result<CodePointSet> parse_class_part() {
    if (at_ >= text_.size()) return wrong("a class is not closed");
    if (is_at('\\')) return parse_escape(/*in_class=*/true);
    const uint32_t c = text_[at_];
    if (c == 0) return wrong("the character U+0000 cannot be generated");
    ++at_;
    return CodePointSet{{c, c}};
  }

  Result<CodePointSet> parse_escape(bool in_class) {
    ++at_;
    if (at_ >= text_.size()) return wrong("the expression ends with a backslash");
    const uint32_t c = text_[at_++];
    switch (c) {
      case 'd':
        return digits();
      case 'D':
        return digits().complement();
      case 'w':
        return word_characters();
      case 'W':
        return word_characters().complement();
      case 's':
        return spaces();
      case 'S':
        return spaces().complement();
      case 't':
        return CodePointSet{{'\t', '\t'}};
      case 'n':
        return CodePointSet{{'\n', '\n'}};
      case 'r':
        return CodePointSet{{'\r', '\r'}};
      case 'f':
        return CodePointSet{{'\f', '\f'}};
      case 'v':
        return CodePointSet{{'\v', '\v'}};
      case 'x':
        return parse_hex(2);
      case 'u':
        return parse_unicode();
      case 'p':
      case 'P':
        return wrong("\\p is not supported: write the characters as a class");
      default:
        break;
    }
    if (c == 'b' && in_class) return CodePointSet{{'\b', '\b'}};
    if (c == 'b' || c == 'B') return wrong("word boundaries are not supported");
    if ((c >= '1' && c <= '9') || c == 'k') return wrong("back-references are not supported");
    if (is_letter_or_digit(c))
      return wrong(std::string("the escape \\") + static_cast<char>(c) + " is not known");
    return CodePointSet{{c, c}};
  }

  Result<CodePointSet> one_character(uint32_t code_point) const {
    CodePointSet set;
    if (code_point <= 0x10FFFF) set.add(code_point, code_point);
    if (set.empty()) return wrong("this is no character that can be generated");
    return set;
  }

  std::optional<uint32_t> take_hex(uint32_t digits) {
    if (text_.size() - at_ < digits) return std::nullopt;
    uint32_t value = 0;
    for (uint32_t i = 0; i < digits; ++i) {
      const uint32_t c = text_[at_ + i];
      const bool is_hex =
          (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
      if (!is_hex) return std::nullopt;
      value = value * 16 + (c <= '9' ? c - '0' : (c | 0x20U) - 'a' + 10);
    }
    at_ += digits;
    return value;
  }

  Result<CodePointSet> parse_hex(uint32_t digits) {
    const auto value = take_hex(digits);
    if (!value) return wrong(std::to_string(digits) + " hexadecimal digits have to follow");
    return one_character(*value);
  }

  Result<CodePointSet> parse_unicode() {
    if (take('{')) {
      uint32_t count = 0;
      while (at_ + count < text_.size() && text_[at_ + count] != '}' && count < 7) ++count;
      const auto value = count >= 1 && count <= 6 ? take_hex(count) : std::nullopt;
      if (!value || !take('}')) return wrong("\\u{…} has to hold 1 to 6 hexadecimal digits");
      return one_character(*value);
    }
    const auto unit = take_hex(4);
    if (!unit) return wrong("4 hexadecimal digits have to follow \\u");
    if (*unit < 0xD800 || *unit > 0xDBFF) return one_character(*unit);
    const bool has_second = at_ + 1 < text_.size() && is_at('\\') && text_[at_ + 1] == 'u';
    if (has_second) at_ += 2;
    const auto low = has_second ? take_hex(4) : std::nullopt;
    if (!low || *low < 0xDC00 || *low > 0xDFFF) return wrong("half of a surrogate pair is missing");
    return one_character(0x10000 + ((*unit - 0xD800) << 10U) + (*low - 0xDC00));
  }

  Result<Expr> parse_quantifier(Expr part) {
    uint32_t least = 0;
    uint32_t most = Expr::kUnbounded;
    if (take('+')) {
      least = 1;
    } else if (take('?')) {
      most = 1;
    } else if (take('{')) {
      TROUPE_ASSIGN_OR_RETURN(least, parse_count());
      if (take('}')) {
        most = least;
      } else {
        if (!take(',')) return wrong("a repetition is {n}, {n,} or {n,m}");
        if (!is_at('}')) {
          TROUPE_ASSIGN_OR_RETURN(most, parse_count());
        }
        if (!take('}')) return wrong("a repetition is {n}, {n,} or {n,m}");
      }
      if (least > most) return wrong("the repetition's bounds are in the wrong order");
    } else if (!take('*')) {
      return part;
    }
    take('?');  // lazy: every length is possible either way
    if (is_at('*') || is_at('+') || is_at('?') || is_at('{'))
      return wrong("two repetitions follow each other: put the first one into a group");
    return repeat(std::move(part), least, most);
  }

  Result<uint32_t> parse_count() {
    const size_t start = at_;
    uint32_t value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      value = value * 10 + (text_[at_] - '0');
      if (value > grammar_limits::kRepetitionMax) {
        return wrong("at most " + std::to_string(grammar_limits::kRepetitionMax) +
                     " repetitions are possible");
      }
      ++at_;
    }
    if (at_ == start) return wrong("a repetition is {n}, {n,} or {n,m}");
    return value;
  }

  const std::vector<uint32_t> text_;
  const RegexUse use_;
  size_t at_ = 0;
};

}  // namespace

Result<Expr> parse_regex(std::string_view pattern, RegexUse use) {
  if (pattern.size() > grammar_limits::kRegexBytesMax) {
    return invalid_argument("the regular expression has " + std::to_string(pattern.size()) +
                            " bytes, at most " + std::to_string(grammar_limits::kRegexBytesMax) +
                            " are possible");
  }
  std::vector<uint32_t> code_points;
  if (!decode_utf8(pattern, code_points))
    return invalid_argument("the regular expression is not UTF-8");
  return Parser(std::move(code_points), use).parse();
}

}  // namespace troupe
