// What makes a grammar unfit: it never ends, makes no progress, or costs too much.

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "engine/grammar/limits.h"
#include "engine/grammar/rules.h"

namespace troupe {

// Fixed points over all rules. Recursion goes into an expression, never from rule to rule, and the
// front halves bound how deep an expression is.
class RulesCheck {
 public:
  explicit RulesCheck(const Rules& rules)
      : rules_(rules),
        can_end_(rules.rules_.size()),
        may_be_empty_(rules.rules_.size()),
        costs_(rules.rules_.size()) {}

  Status check() {
    TROUPE_RETURN_IF_ERROR(check_costs());
    spread(can_end_, &RulesCheck::can_end);
    spread(may_be_empty_, &RulesCheck::may_be_empty);
    for (size_t i = 0; i < can_end_.size(); ++i) {
      if (can_end_[i]) continue;
      return invalid_argument(rules_.rules_[i].place +
                              " has no finite value: each one would have to contain another. Make "
                              "the part that leads back optional, or give it an alternative");
    }
    TROUPE_RETURN_IF_ERROR(check_repetitions(rules_.root_, "the root"));
    for (const Rules::Rule& rule : rules_.rules_)
      TROUPE_RETURN_IF_ERROR(check_repetitions(rule.body, rule.place));
    return check_progress();
  }

 private:
  using Property = bool (RulesCheck::*)(const Expr&) const;

  // Least fixed point: a rule has the property when its body has, given those that have it.
  void spread(std::vector<uint8_t>& known, Property property) {
    for (bool changed = true; changed;) {
      changed = false;
      // Backwards: front halves declare a rule before those that it uses.
      for (size_t i = known.size(); i-- > 0;) {
        if (known[i] || !(this->*property)(rules_.rules_[i].body)) continue;
        known[i] = 1;
        changed = true;
      }
    }
  }

  [[nodiscard]] bool can_end(const Expr& expr) const {
    const auto recurse = [this](const Expr& part) { return can_end(part); };
    switch (expr.kind) {
      case Expr::Kind::kLiteral:
        return true;
      case Expr::Kind::kClass:
        return !expr.set.empty();
      case Expr::Kind::kRule:
        return can_end_[expr.rule] != 0;
      case Expr::Kind::kRepeat:
        return expr.least == 0 || can_end(expr.parts[0]);
      case Expr::Kind::kSequence:
        return std::all_of(expr.parts.begin(), expr.parts.end(), recurse);
      case Expr::Kind::kChoice:
        return std::any_of(expr.parts.begin(), expr.parts.end(), recurse);
    }
    return false;
  }

  [[nodiscard]] bool may_be_empty(const Expr& expr) const {
    const auto recurse = [this](const Expr& part) { return may_be_empty(part); };
    switch (expr.kind) {
      case Expr::Kind::kLiteral:
        return expr.literal.empty();
      case Expr::Kind::kClass:
        return false;
      case Expr::Kind::kRule:
        return may_be_empty_[expr.rule] != 0;
      case Expr::Kind::kRepeat:
        return expr.least == 0 || may_be_empty(expr.parts[0]);
      case Expr::Kind::kSequence:
        return std::all_of(expr.parts.begin(), expr.parts.end(), recurse);
      case Expr::Kind::kChoice:
        return std::any_of(expr.parts.begin(), expr.parts.end(), recurse);
    }
    return false;
  }

  Status check_repetitions(const Expr& expr, const std::string& place) const {
    if (expr.kind == Expr::Kind::kRepeat && expr.most > 1 && may_be_empty(expr.parts[0])) {
      return invalid_argument(place +
                              " repeats something that may be empty, which can be read in endless "
                              "ways: make what is repeated at least one character long");
    }
    for (const Expr& part : expr.parts) TROUPE_RETURN_IF_ERROR(check_repetitions(part, place));
    return ok_status();
  }

  // The rules that may come first in `expr`, before any character.
  void collect_first(const Expr& expr, std::vector<uint32_t>& first) const {
    switch (expr.kind) {
      case Expr::Kind::kLiteral:
      case Expr::Kind::kClass:
        return;
      case Expr::Kind::kRule:
        first.push_back(expr.rule);
        return;
      case Expr::Kind::kRepeat:
      case Expr::Kind::kChoice:
        for (const Expr& part : expr.parts) collect_first(part, first);
        return;
      case Expr::Kind::kSequence:
        for (const Expr& part : expr.parts) {
          collect_first(part, first);
          if (!may_be_empty(part)) return;
        }
        return;
    }
  }

  // No rule may begin with itself: depth first, without recursion from rule to rule.
  [[nodiscard]] Status check_progress() const {
    enum : uint8_t { kNew, kOpen, kDone };
    std::vector<uint8_t> states(rules_.rules_.size(), kNew);
    struct Visit {
      uint32_t rule;
      std::vector<uint32_t> first;
      size_t next = 0;
    };
    std::vector<Visit> path;
    const auto open = [&](uint32_t rule) {
      states[rule] = kOpen;
      path.push_back({.rule = rule, .first = {}});
      collect_first(rules_.rules_[rule].body, path.back().first);
    };
    for (uint32_t start = 0; start < states.size(); ++start) {
      if (states[start] != kNew) continue;
      open(start);
      while (!path.empty()) {
        Visit& visit = path.back();
        if (visit.next == visit.first.size()) {
          states[visit.rule] = kDone;
          path.pop_back();
          continue;
        }
        const uint32_t rule = visit.first[visit.next++];
        if (states[rule] == kOpen) {
          return invalid_argument(rules_.rules_[rule].place +
                                  " leads back to itself without a character in between: put "
                                  "something before the part that recurs");
        }
        if (states[rule] == kNew) open(rule);
      }
    }
    return ok_status();
  }

  // A repetition up to a bound is written out that often by the compiler, one without a bound as
  // often as its least.
  [[nodiscard]] static uint64_t cost(const Expr& expr) {
    uint64_t sum = 1 + expr.literal.size() / 8 + expr.set.ranges().size() / 8;
    for (const Expr& part : expr.parts) sum += cost(part);
    if (expr.kind == Expr::Kind::kRepeat) {
      const uint64_t times = expr.most == Expr::kUnbounded ? expr.least + 1 : expr.most;
      // A run of one character class is counted, not written out.
      const bool is_plain = expr.parts[0].kind == Expr::Kind::kClass;
      sum *= is_plain ? 1 + times / 16 : std::max<uint64_t>(times, 1);
    }
    return std::min(sum, 2 * grammar_limits::kCostMax);
  }

  Status check_costs() {
    if (rules_.rules_.size() > grammar_limits::kRulesMax) {
      return invalid_argument("it becomes " + std::to_string(rules_.rules_.size()) +
                              " rules; at most " + std::to_string(grammar_limits::kRulesMax) +
                              " are possible: ask for less at once");
    }
    uint64_t sum = cost(rules_.root_);
    for (size_t i = 0; i < costs_.size(); ++i) {
      TROUPE_ASSERT(rules_.rules_[i].is_defined, i, rules_.rules_[i].place);
      costs_[i] = cost(rules_.rules_[i].body);
      sum += costs_[i];
    }
    if (sum <= grammar_limits::kCostMax) return ok_status();
    const auto most = std::max_element(costs_.begin(), costs_.end());
    const std::string where =
        most == costs_.end()
            ? ""
            : " (most of it " + rules_.rules_[static_cast<size_t>(most - costs_.begin())].place +
                  ")";
    return invalid_argument("it is too large to compile" + where +
                            ": its repetitions and alternatives are worth " + std::to_string(sum) +
                            " parts, at most " + std::to_string(grammar_limits::kCostMax) +
                            " are possible");
  }

  const Rules& rules_;
  std::vector<uint8_t> can_end_, may_be_empty_;
  std::vector<uint64_t> costs_;
};

Status Rules::check() const {
  return RulesCheck(*this).check();
}

}  // namespace troupe
