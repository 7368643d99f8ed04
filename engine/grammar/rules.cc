#include "engine/grammar/rules.h"

#include <cstdio>
#include <utility>

#include "base/assert.h"
#include "engine/grammar/limits.h"

namespace troupe {
namespace {

void write_code_point(uint32_t code_point, std::string& out) {
  const bool is_plain = (code_point >= '0' && code_point <= '9') ||
                        (code_point >= 'a' && code_point <= 'z') ||
                        (code_point >= 'A' && code_point <= 'Z');
  if (is_plain) {
    out.push_back(static_cast<char>(code_point));
    return;
  }
  char text[16];
  std::snprintf(text, sizeof text, code_point < 0x10000 ? "\\u%04x" : "\\U%08x", code_point);
  out += text;
}

void write_literal(const std::string& text, std::string& out) {
  std::vector<uint32_t> code_points;
  const bool is_utf8 = decode_utf8(text, code_points);
  TROUPE_ASSERT(is_utf8, text.size());
  out.push_back('"');
  for (const uint32_t code_point : code_points) {
    const bool is_plain =
        code_point >= 0x20 && code_point < 0x7F && code_point != '"' && code_point != '\\';
    if (is_plain) {
      out.push_back(static_cast<char>(code_point));
    } else {
      write_code_point(code_point, out);
    }
  }
  out.push_back('"');
}

void write_class(const CodePointSet& set, std::string& out) {
  TROUPE_ASSERT(!set.empty());
  out.push_back('[');
  for (const auto& [low, high] : set.ranges()) {
    write_code_point(low, out);
    if (low == high) continue;
    out.push_back('-');
    write_code_point(high, out);
  }
  out.push_back(']');
}

void write_repetition(const Expr& expr, std::string& out) {
  if (expr.most == Expr::kUnbounded && expr.least <= 1) {
    out.push_back(expr.least == 0 ? '*' : '+');
  } else if (expr.least == 0 && expr.most == 1) {
    out.push_back('?');
  } else {
    out += "{" + std::to_string(expr.least) + ",";
    if (expr.most != Expr::kUnbounded) out += std::to_string(expr.most);
    out.push_back('}');
  }
}

// Stops early when the text is too long anyway.
void write_expr(const Expr& expr, std::string& out) {
  if (out.size() > grammar_limits::kRulesBytesMax) return;
  switch (expr.kind) {
    case Expr::Kind::kLiteral:
      return write_literal(expr.literal, out);
    case Expr::Kind::kClass:
      return write_class(expr.set, out);
    case Expr::Kind::kRule:
      out += "r" + std::to_string(expr.rule);
      return;
    case Expr::Kind::kRepeat:
      // A class alone, because the compiler handles a run of one class apart.
      if (expr.parts[0].kind == Expr::Kind::kClass) {
        write_class(expr.parts[0].set, out);
        return write_repetition(expr, out);
      }
      out.push_back('(');
      write_expr(expr.parts[0], out);
      out.push_back(')');
      return write_repetition(expr, out);
    case Expr::Kind::kSequence:
    case Expr::Kind::kChoice:
      break;
  }
  const char* separator = expr.kind == Expr::Kind::kChoice ? " | " : " ";
  out.push_back('(');
  for (size_t i = 0; i < expr.parts.size(); ++i) {
    if (i > 0) out += separator;
    write_expr(expr.parts[i], out);
  }
  out.push_back(')');
}

}  // namespace

Expr literal(std::string text) {
  Expr expr;
  expr.literal = std::move(text);
  return expr;
}

Expr one_of(CodePointSet set) {
  Expr expr;
  if (set.ranges().size() == 1 && set.ranges()[0].first == set.ranges()[0].second) {
    append_utf8(set.ranges()[0].first, expr.literal);
    return expr;
  }
  expr.kind = Expr::Kind::kClass;
  expr.set = std::move(set);
  return expr;
}

Expr sequence(std::vector<Expr> parts) {
  Expr expr;
  expr.kind = Expr::Kind::kSequence;
  for (Expr& part : parts) {
    if (part.is_empty()) continue;
    const bool joins = part.kind == Expr::Kind::kLiteral && !expr.parts.empty() &&
                       expr.parts.back().kind == Expr::Kind::kLiteral;
    if (joins) {
      expr.parts.back().literal += part.literal;
    } else {
      expr.parts.push_back(std::move(part));
    }
  }
  if (expr.parts.empty()) return literal("");
  if (expr.parts.size() == 1) return Expr(std::move(expr.parts[0]));
  return expr;
}

Expr choice(std::vector<Expr> parts) {
  TROUPE_ASSERT(!parts.empty());
  if (parts.size() == 1) return std::move(parts[0]);
  Expr expr;
  expr.kind = Expr::Kind::kChoice;
  expr.parts = std::move(parts);
  return expr;
}

Expr repeat(Expr part, uint32_t least, uint32_t most) {
  TROUPE_ASSERT(least <= most, least, most);
  if (most == 0 || part.is_empty()) return literal("");
  if (least == 1 && most == 1) return part;
  Expr expr;
  expr.kind = Expr::Kind::kRepeat;
  expr.parts.push_back(std::move(part));
  expr.least = least;
  expr.most = most;
  return expr;
}

Expr optional(Expr part) {
  return repeat(std::move(part), 0, 1);
}

uint32_t Rules::declare(std::string place) {
  rules_.push_back({.place = std::move(place), .body = {}, .is_defined = false});
  return static_cast<uint32_t>(rules_.size() - 1);
}

void Rules::define(uint32_t rule, Expr body) {
  TROUPE_ASSERT(rule < rules_.size() && !rules_[rule].is_defined, rule);
  rules_[rule].body = std::move(body);
  rules_[rule].is_defined = true;
}

Expr Rules::add(std::string place, Expr body) {
  const uint32_t rule = declare(std::move(place));
  define(rule, std::move(body));
  return ref(rule);
}

Expr Rules::ref(uint32_t rule) {
  Expr expr;
  expr.kind = Expr::Kind::kRule;
  expr.rule = rule;
  return expr;
}

void Rules::set_root(Expr root) {
  root_ = std::move(root);
}

Result<std::string> Rules::write() const {
  std::string out = "root ::= ";
  write_expr(root_, out);
  out.push_back('\n');
  for (size_t i = 0; i < rules_.size(); ++i) {
    TROUPE_ASSERT(rules_[i].is_defined, i, rules_[i].place);
    out += "r" + std::to_string(i) + " ::= ";
    write_expr(rules_[i].body, out);
    out.push_back('\n');
  }
  if (out.size() > grammar_limits::kRulesBytesMax) {
    return invalid_argument("written out, the grammar takes more than " +
                            std::to_string(grammar_limits::kRulesBytesMax) +
                            " bytes: ask for less at once");
  }
  return out;
}

}  // namespace troupe
