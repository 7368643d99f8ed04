#pragma once
// The spellings of numbers between bounds, as a grammar. JSON's forms without an exponent, without
// leading zeros, and "-" only before what is not zero.

#include <cstdint>
#include <optional>

#include "engine/grammar/rules.h"
#include "troupe/status.h"

namespace troupe {

// Every integer from `low` to `high`, each in one spelling. Precondition: low ≤ high.
[[nodiscard]] Expr integers_between(int64_t low, int64_t high);
// Integers of up to kIntegerDigitsMax digits.
[[nodiscard]] Expr any_integer();
// Multiples of `step` from `low` to `high`, one by one. Precondition: step ≥ 1, low ≤ high.
// kInvalidArgument: there is none, or there are more than kEnumValuesMax.
[[nodiscard]] Result<Expr> multiples_between(int64_t step, int64_t low, int64_t high);
// Multiples of `step` of up to kMultipleDigitsMax digits. The rules are one per remainder and
// digit. Precondition: 1 ≤ step ≤ kMultipleMax.
inline constexpr int64_t kMultipleMax = 100;
inline constexpr uint32_t kMultipleDigitsMax = 9;
[[nodiscard]] Expr multiples(int64_t step, const std::string& place, Rules& rules);

struct NumberBounds {
  struct Bound {
    double value = 0.0;
    bool is_exclusive = false;
  };
  std::optional<Bound> low, high;
};
// Decimal numbers within the bounds, with up to 6 digits after the point where both bounds are
// below 10⁹ in size, and integers otherwise: so that reading what was written as a double, as every
// JSON reader does, cannot cross a bound. kInvalidArgument: no such number exists, or a bound is
// not below 10¹⁷ in size.
[[nodiscard]] Result<Expr> numbers_between(const NumberBounds& bounds);
// Any number, in a form that every reader takes: finite, an exponent of at most two digits.
[[nodiscard]] Expr any_number();

}  // namespace troupe
