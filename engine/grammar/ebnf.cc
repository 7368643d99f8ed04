#include "engine/grammar/ebnf.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/assert.h"
#include "engine/grammar/limits.h"

namespace troupe {
namespace {

bool is_name_character(uint32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '-';
}

class Parser {
 public:
  explicit Parser(std::vector<uint32_t> text) : text_(std::move(text)) {}

  Result<Rules> parse() {
    skip_space();
    while (at_ < text_.size()) {
      const size_t start = at_;
      const std::string name = take_name();
      skip_space();
      if (name.empty() || !take_arrow()) {
        at_ = start;
        return wrong("a rule begins with its name and ::=");
      }
      TROUPE_ASSIGN_OR_RETURN(const uint32_t rule, rule_named(name));
      if (!defined_.emplace(name, true).second)
        return wrong("the rule '" + utf8_prefix(name, kQuotedBytesMax) + "' is defined twice");
      TROUPE_ASSIGN_OR_RETURN(Expr body, parse_alternatives(0));
      rules_.define(rule, std::move(body));
      if (is_at(')')) return wrong("')' closes no group");
    }
    for (const auto& [name, rule] : names_) {
      if (!defined_.contains(name))
        return invalid_argument("the grammar has no rule '" + utf8_prefix(name, kQuotedBytesMax) +
                                "', which is used");
    }
    const auto root = names_.find("root");
    if (root == names_.end())
      return invalid_argument("the grammar has no rule 'root', where it would begin");
    rules_.set_root(Rules::ref(root->second));
    return std::move(rules_);
  }

 private:
  [[nodiscard]] Status wrong(const std::string& what) const {
    const auto line = std::count(text_.begin(), text_.begin() + static_cast<ptrdiff_t>(at_), '\n');
    return invalid_argument("in line " + std::to_string(line + 1) + " of the grammar: " + what);
  }
  [[nodiscard]] bool is_at(char c) const {
    return at_ < text_.size() && text_[at_] == static_cast<uint32_t>(c);
  }
  bool take(char c) {
    if (!is_at(c)) return false;
    ++at_;
    return true;
  }
  void skip_space() {
    while (at_ < text_.size()) {
      if (is_at('#')) {
        while (at_ < text_.size() && !is_at('\n')) ++at_;
      } else if (is_at(' ') || is_at('\t') || is_at('\n') || is_at('\r')) {
        ++at_;
      } else {
        return;
      }
    }
  }
  std::string take_name() {
    std::string name;
    while (at_ < text_.size() && is_name_character(text_[at_]))
      name.push_back(static_cast<char>(text_[at_++]));
    return name;
  }
  bool take_arrow() {
    if (!is_at(':') || at_ + 2 >= text_.size() || text_[at_ + 1] != ':' || text_[at_ + 2] != '=')
      return false;
    at_ += 3;
    return true;
  }
  // Whether the next rule begins here.
  bool is_at_rule() {
    const size_t start = at_;
    const bool has_name = !take_name().empty();
    skip_space();
    const bool is_rule = has_name && take_arrow();
    at_ = start;
    return is_rule;
  }

  Result<uint32_t> rule_named(const std::string& name) {
    const auto known = names_.find(name);
    if (known != names_.end()) return known->second;
    if (names_.size() >= grammar_limits::kEbnfRulesMax) {
      return wrong("more than " + std::to_string(grammar_limits::kEbnfRulesMax) +
                   " rules are not possible");
    }
    const uint32_t rule = rules_.declare("the rule '" + utf8_prefix(name, kQuotedBytesMax) + "'");
    names_.emplace(name, rule);
    return rule;
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
    std::vector<Expr> parts;
    for (;;) {
      skip_space();
      if (at_ >= text_.size() || is_at('|') || is_at(')') || is_at_rule()) break;
      TROUPE_ASSIGN_OR_RETURN(Expr part, parse_item(depth));
      TROUPE_ASSIGN_OR_RETURN(part, parse_quantifier(std::move(part)));
      parts.push_back(std::move(part));
    }
    return sequence(std::move(parts));
  }

  Result<Expr> parse_item(uint32_t depth) {
    if (is_at('"')) return parse_literal();
    if (is_at('[')) return parse_class();
    if (take('.')) return one_of(CodePointSet{{'\n', '\n'}, {'\r', '\r'}}.complement());
    if (take('(')) {
      TROUPE_ASSIGN_OR_RETURN(Expr inner, parse_alternatives(depth + 1));
      if (!take(')')) return wrong("a group is not closed");
      return inner;
    }
    const std::string name = take_name();
    if (name.empty()) {
      return wrong("expected \"text\", [characters], (a group) or a rule's name");
    }
    TROUPE_ASSIGN_OR_RETURN(const uint32_t rule, rule_named(name));
    return Rules::ref(rule);
  }

  Result<Expr> parse_literal() {
    ++at_;
    std::string text;
    while (!is_at('"')) {
      if (at_ >= text_.size() || is_at('\n')) return wrong("a text is not closed");
      TROUPE_ASSIGN_OR_RETURN(const uint32_t c, parse_character());
      append_utf8(c, text);
    }
    ++at_;
    return literal(std::move(text));
  }

  Result<Expr> parse_class() {
    ++at_;
    const bool is_negated = take('^');
    CodePointSet set;
    while (!is_at(']')) {
      if (at_ >= text_.size()) return wrong("a class is not closed");
      TROUPE_ASSIGN_OR_RETURN(const uint32_t from, parse_character());
      uint32_t to = from;
      if (is_at('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        TROUPE_ASSIGN_OR_RETURN(to, parse_character());
      }
      if (from > to) return wrong("a range goes backwards");
      set.add(from, to);
    }
    ++at_;
    if (is_negated) set = set.complement();
    if (set.empty()) return wrong("a class matches no character");
    return one_of(std::move(set));
  }

  // One character, perhaps escaped.
  Result<uint32_t> parse_character() {
    if (at_ >= text_.size()) return wrong("the grammar ends too early");
    uint32_t c = text_[at_++];
    if (c == '\\') {
      TROUPE_ASSIGN_OR_RETURN(c, parse_escape());
    }
    CodePointSet set;
    if (c <= 0x10FFFF) set.add(c, c);
    if (set.empty()) return wrong("this is no character that can be generated");
    return c;
  }

  Result<uint32_t> parse_escape() {
    if (at_ >= text_.size()) return wrong("the grammar ends with a backslash");
    const uint32_t c = text_[at_++];
    switch (c) {
      case 'n':
        return uint32_t{'\n'};
      case 'r':
        return uint32_t{'\r'};
      case 't':
        return uint32_t{'\t'};
      case 'x':
        return parse_hex(2);
      case 'u':
        return parse_hex(4);
      case 'U':
        return parse_hex(8);
      default:
        break;
    }
    const bool is_letter_or_digit = is_name_character(c) && c != '-' && c != '_';
    if (is_letter_or_digit)
      return wrong(std::string("the escape \\") + static_cast<char>(c) + " is not known");
    return c;
  }

  Result<uint32_t> parse_hex(uint32_t digits) {
    uint32_t value = 0;
    for (uint32_t i = 0; i < digits; ++i, ++at_) {
      const uint32_t c = at_ < text_.size() ? text_[at_] : 0;
      const bool is_hex =
          (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
      if (!is_hex) return wrong(std::to_string(digits) + " hexadecimal digits have to follow");
      value = value * 16 + (c <= '9' ? c - '0' : (c | 0x20U) - 'a' + 10);
    }
    return value;
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
        skip_space();
        if (!is_at('}')) {
          TROUPE_ASSIGN_OR_RETURN(most, parse_count());
        }
        if (!take('}')) return wrong("a repetition is {n}, {n,} or {n,m}");
      }
      if (least > most) return wrong("the repetition's bounds are in the wrong order");
    } else if (!take('*')) {
      return part;
    }
    if (is_at('*') || is_at('+') || is_at('?') || is_at('{'))
      return wrong("two repetitions follow each other: put the first one into a group");
    return repeat(std::move(part), least, most);
  }

  Result<uint32_t> parse_count() {
    skip_space();
    const size_t start = at_;
    uint32_t value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      value = value * 10 + (text_[at_++] - '0');
      if (value > grammar_limits::kRepetitionMax) {
        return wrong("at most " + std::to_string(grammar_limits::kRepetitionMax) +
                     " repetitions are possible");
      }
    }
    if (at_ == start) return wrong("a repetition is {n}, {n,} or {n,m}");
    skip_space();
    return value;
  }

  const std::vector<uint32_t> text_;
  size_t at_ = 0;
  Rules rules_;
  std::map<std::string, uint32_t> names_;
  std::map<std::string, bool> defined_;
};

}  // namespace

Result<Rules> parse_ebnf(std::string_view text) {
  if (text.size() > grammar_limits::kTextBytesMax) {
    return invalid_argument("the grammar has " + std::to_string(text.size()) + " bytes, at most " +
                            std::to_string(grammar_limits::kTextBytesMax) + " are possible");
  }
  std::vector<uint32_t> code_points;
  if (!decode_utf8(text, code_points)) return invalid_argument("the grammar is not UTF-8");
  return Parser(std::move(code_points)).parse();
}

}  // namespace troupe
