#pragma once
// Grammars as the front halves make them: every kind of demand (schema, expression, choice, a
// client's own grammar) becomes rules of this one form, which are checked in one place and written
// out for the compiler.

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "engine/grammar/code_points.h"
#include "troupe/status.h"

namespace troupe {

// What one place of a rule matches. A value.
struct Expr {
  enum class Kind : uint8_t {
    kLiteral,   // exactly `literal`; the empty one matches nothing at all
    kClass,     // one character of `set`
    kSequence,  // all `parts`, one after the other
    kChoice,    // one of `parts`
    kRepeat,    // parts[0], `least` to `most` times
    kRule,      // what rule number `rule` matches
  };
  static constexpr uint32_t kUnbounded = std::numeric_limits<uint32_t>::max();

  Kind kind = Kind::kLiteral;
  std::string literal;  // UTF-8
  CodePointSet set;
  std::vector<Expr> parts;
  uint32_t least = 0, most = 0;
  uint32_t rule = 0;

  [[nodiscard]] bool is_empty() const { return kind == Kind::kLiteral && literal.empty(); }
};

[[nodiscard]] Expr literal(std::string text);
// A literal where the set has one character.
[[nodiscard]] Expr one_of(CodePointSet set);
// Drops empty parts and joins literals that follow each other.
[[nodiscard]] Expr sequence(std::vector<Expr> parts);
// Precondition: at least one part.
[[nodiscard]] Expr choice(std::vector<Expr> parts);
[[nodiscard]] Expr repeat(Expr part, uint32_t least, uint32_t most);
[[nodiscard]] Expr optional(Expr part);

class Rules {
 public:
  // A rule to be defined later; `place` names for people what it came from ("$.properties.a").
  [[nodiscard]] uint32_t declare(std::string place);
  void define(uint32_t rule, Expr body);
  [[nodiscard]] Expr add(std::string place, Expr body);
  [[nodiscard]] static Expr ref(uint32_t rule);

  // Where every derivation begins. To be set before the rules are checked or written.
  void set_root(Expr root);

  // kInvalidArgument, and what to do about it: a rule that never ends, one that comes back to
  // itself without a character in between, a repetition without bound of what may be empty, or more
  // than grammar_limits.h allows. Every rule declared has been defined.
  [[nodiscard]] Status check() const;
  // In xgrammar's EBNF; the root rule is `root`. kInvalidArgument: longer than kRulesBytesMax.
  [[nodiscard]] Result<std::string> write() const;

 private:
  friend class RulesCheck;
  struct Rule {
    std::string place;
    Expr body;
    bool is_defined = false;
  };
  std::vector<Rule> rules_;
  Expr root_;
};

}  // namespace troupe
