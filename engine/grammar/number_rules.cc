#include "engine/grammar/number_rules.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "base/assert.h"
#include "engine/grammar/limits.h"

namespace troupe {
namespace {

using grammar_limits::kFractionDigitsMax;
using grammar_limits::kIntegerDigitsMax;

constexpr uint32_t kDecimals = 6;
constexpr int64_t kScale = 1'000'000;    // 10^kDecimals
constexpr double kFractionsBelow = 1e9;  // bounds with decimals: 15 digits, exact in a double
constexpr double kBoundBelow = 1e17;     // bounds at all
constexpr int64_t kUnboundedMillionths = 1'000'000'000'000 * kScale;  // where there is no bound

Expr digits(char low, char high) {
  return one_of({{static_cast<uint32_t>(low), static_cast<uint32_t>(high)}});
}

Expr any_digits(uint32_t least, uint32_t most) {
  return repeat(digits('0', '9'), least, most);
}

bool is_all(std::string_view text, char wanted) {
  return std::all_of(text.begin(), text.end(), [wanted](char c) { return c == wanted; });
}

// The strings of as many digits as both bounds have, from `low` to `high`.
Expr same_length(std::string_view low, std::string_view high) {
  TROUPE_ASSERT(low.size() == high.size() && low <= high, low, high);
  if (low.empty()) return literal("");
  const auto size = static_cast<uint32_t>(low.size());
  if (is_all(low, '0') && is_all(high, '9')) return any_digits(size, size);
  const std::string_view low_rest = low.substr(1);
  const std::string_view high_rest = high.substr(1);
  const auto digit = [](char c) { return literal(std::string(1, c)); };
  if (low[0] == high[0]) return sequence({digit(low[0]), same_length(low_rest, high_rest)});
  const std::string nines(low_rest.size(), '9');
  const std::string zeros(low_rest.size(), '0');
  std::vector<Expr> parts;
  char from = low[0];
  char to = high[0];
  if (!is_all(low_rest, '0')) {
    parts.push_back(sequence({digit(from), same_length(low_rest, nines)}));
    ++from;
  }
  if (!is_all(high_rest, '9')) {
    parts.push_back(sequence({digit(to), same_length(zeros, high_rest)}));
    --to;
  }
  if (from <= to) parts.push_back(sequence({digits(from, to), any_digits(size - 1, size - 1)}));
  return choice(std::move(parts));
}

// 0 ≤ low ≤ high.
Expr naturals_between(uint64_t low, uint64_t high) {
  TROUPE_ASSERT(low <= high, low, high);
  const std::string last = std::to_string(high);
  std::vector<Expr> parts;
  for (std::string first = std::to_string(low);;) {
    if (first.size() == last.size()) {
      parts.push_back(same_length(first, last));
      return choice(std::move(parts));
    }
    parts.push_back(same_length(first, std::string(first.size(), '9')));
    first = "1" + std::string(first.size(), '0');
  }
}

uint64_t magnitude(int64_t value) {
  return value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
}

// The tails of fractions: up to low.size() digits whose value, filled up with zeros, is from `low`
// to `high`.
Expr fraction_tail(std::string_view low, std::string_view high) {
  TROUPE_ASSERT(low.size() == high.size() && low <= high, low, high);
  if (low.empty()) return literal("");
  const auto size = static_cast<uint32_t>(low.size());
  if (is_all(low, '0') && is_all(high, '9')) return any_digits(0, size);
  const std::string nines(low.size() - 1, '9');
  const std::string zeros(low.size() - 1, '0');
  std::vector<Expr> parts;
  if (is_all(low, '0')) parts.push_back(literal(""));
  for (char digit = low[0]; digit <= high[0]; ++digit) {
    const std::string_view from = digit == low[0] ? low.substr(1) : std::string_view(zeros);
    const std::string_view to = digit == high[0] ? high.substr(1) : std::string_view(nines);
    parts.push_back(sequence({literal(std::string(1, digit)), fraction_tail(from, to)}));
  }
  return choice(std::move(parts));
}

std::string six_digits(int64_t fraction) {
  std::string text = std::to_string(fraction);
  return std::string(kDecimals - text.size(), '0') + text;
}

// "" or "." and digits: a fraction from `low` to `high` millionths.
Expr fraction_between(int64_t low, int64_t high) {
  std::vector<Expr> parts;
  if (low == 0) parts.push_back(literal(""));
  const std::string from = six_digits(low);
  const std::string to = six_digits(high);
  const std::string nines(kDecimals - 1, '9');
  const std::string zeros(kDecimals - 1, '0');
  for (char digit = from[0]; digit <= to[0]; ++digit) {
    const std::string_view least =
        digit == from[0] ? std::string_view(from).substr(1) : std::string_view(zeros);
    const std::string_view most =
        digit == to[0] ? std::string_view(to).substr(1) : std::string_view(nines);
    parts.push_back(
        sequence({literal("."), literal(std::string(1, digit)), fraction_tail(least, most)}));
  }
  return choice(std::move(parts));
}

// Numbers from `low` to `high` millionths, 0 ≤ low ≤ high.
Expr decimals_between(int64_t low, int64_t high) {
  const int64_t first = low / kScale;
  const int64_t last = high / kScale;
  const auto whole = [](int64_t value) { return literal(std::to_string(value)); };
  if (first == last) return sequence({whole(first), fraction_between(low % kScale, high % kScale)});
  std::vector<Expr> parts;
  parts.push_back(sequence({whole(first), fraction_between(low % kScale, kScale - 1)}));
  if (last - first > 1) {
    parts.push_back(sequence(
        {naturals_between(static_cast<uint64_t>(first) + 1, static_cast<uint64_t>(last) - 1),
         optional(sequence({literal("."), any_digits(1, kDecimals)}))}));
  }
  parts.push_back(sequence({whole(last), fraction_between(0, high % kScale)}));
  return choice(std::move(parts));
}

Status nothing_between() {
  return invalid_argument(
      "no number lies between the bounds (with at most 6 digits after the point): widen them");
}

// A bound in millionths, rounded into the range. Precondition: |value| < kFractionsBelow.
int64_t scaled(const NumberBounds::Bound& bound, bool is_low) {
  // The shortest decimal that reads as the bound: what its author wrote.
  std::array<char, 64> text{};
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), bound.value, std::chars_format::fixed);
  TROUPE_ASSERT(error == std::errc{}, bound.value);
  std::string_view rest(text.data(), static_cast<size_t>(end - text.data()));
  const bool is_negative = rest.starts_with('-');
  if (is_negative) rest.remove_prefix(1);
  const size_t point = std::min(rest.find('.'), rest.size());
  std::string fraction(rest.substr(std::min(point + 1, rest.size())));
  bool is_exact = true;
  if (fraction.size() > kDecimals) is_exact = is_all(std::string_view(fraction).substr(6), '0');
  fraction.resize(kDecimals, '0');
  const std::string all = std::string(rest.substr(0, point)) + fraction;
  int64_t value = 0;
  const auto read = std::from_chars(all.data(), all.data() + all.size(), value);
  TROUPE_ASSERT(read.ec == std::errc{}, all);
  if (is_negative) value = -value;
  // The digits cut off moved it towards zero.
  if (!is_exact) {
    if (is_low && !is_negative) return value + 1;
    if (!is_low && is_negative) return value - 1;
    return value;
  }
  if (bound.is_exclusive) return is_low ? value + 1 : value - 1;
  return value;
}

// A bound as an integer, rounded into the range. Precondition: |value| < kBoundBelow.
int64_t rounded(const NumberBounds::Bound& bound, bool is_low) {
  const double whole = is_low ? std::ceil(bound.value) : std::floor(bound.value);
  auto value = static_cast<int64_t>(whole);
  if (bound.is_exclusive && whole == bound.value) value += is_low ? 1 : -1;
  return value;
}

}  // namespace

Expr integers_between(int64_t low, int64_t high) {
  TROUPE_ASSERT(low <= high, low, high);
  std::vector<Expr> parts;
  if (high >= 0) {
    parts.push_back(
        naturals_between(static_cast<uint64_t>(std::max<int64_t>(low, 0)), magnitude(high)));
  }
  if (low < 0) {
    const uint64_t least = high < 0 ? magnitude(high) : 1;
    parts.push_back(sequence({literal("-"), naturals_between(least, magnitude(low))}));
  }
  return choice(std::move(parts));
}

Expr any_integer() {
  return choice({literal("0"), sequence({optional(literal("-")), digits('1', '9'),
                                         any_digits(0, kIntegerDigitsMax - 1)})});
}

Result<Expr> multiples_between(int64_t step, int64_t low, int64_t high) {
  TROUPE_ASSERT(step >= 1 && low <= high, step, low, high);
  // Of the quotients: rounded up and down, without leaving the type.
  const int64_t first = low / step + (low % step > 0 ? 1 : 0);
  const int64_t last = high / step - (high % step < 0 ? 1 : 0);
  if (first > last) {
    return invalid_argument("no multiple of " + std::to_string(step) +
                            " lies between the bounds: widen them");
  }
  if (static_cast<uint64_t>(last) - static_cast<uint64_t>(first) >=
      grammar_limits::kEnumValuesMax) {
    return invalid_argument("more than " + std::to_string(grammar_limits::kEnumValuesMax) +
                            " multiples of " + std::to_string(step) +
                            " lie between the bounds: narrow them, or leave one of the two out");
  }
  std::vector<Expr> parts;
  for (int64_t factor = first; factor <= last; ++factor)
    parts.push_back(literal(std::to_string(factor * step)));
  return choice(std::move(parts));
}

// Rules, by digits left and remainder so far: the digits that may follow.
Expr multiples(int64_t step, const std::string& place, Rules& rules) {
  TROUPE_ASSERT(step >= 1 && step <= kMultipleMax, step);
  const auto count = static_cast<size_t>(step);
  std::vector<Expr> after(count);  // one digit further; none may follow the last one
  after[0] = literal("");
  std::vector<uint8_t> is_possible(count, 0);
  is_possible[0] = 1;
  const auto digit_then = [&](size_t remainder, char first, std::vector<Expr>& parts) {
    for (char digit = first; digit <= '9'; ++digit) {
      const size_t next = (remainder * 10 + static_cast<size_t>(digit - '0')) % count;
      if (is_possible[next])
        parts.push_back(sequence({literal(std::string(1, digit)), after[next]}));
    }
  };
  for (uint32_t digit = 1; digit < kMultipleDigitsMax; ++digit) {
    std::vector<Expr> before(count);
    std::vector<uint8_t> now_possible(count, 0);
    for (size_t remainder = 0; remainder < count; ++remainder) {
      std::vector<Expr> parts;
      if (remainder == 0) parts.push_back(literal(""));
      digit_then(remainder, '0', parts);
      if (parts.empty()) continue;
      now_possible[remainder] = 1;
      before[remainder] = rules.add(place, choice(std::move(parts)));
    }
    after = std::move(before);
    is_possible = std::move(now_possible);
  }
  std::vector<Expr> starts;
  digit_then(0, '1', starts);
  return choice({literal("0"), sequence({optional(literal("-")), choice(std::move(starts))})});
}

Result<Expr> numbers_between(const NumberBounds& bounds) {
  bool has_fractions = true;
  for (const auto& bound : {bounds.low, bounds.high}) {
    if (!bound) continue;
    if (!(std::fabs(bound->value) < kBoundBelow)) {
      return invalid_argument(
          "a bound of 10^17 or more in size cannot be kept exactly: leave it "
          "out, or use type integer");
    }
    if (!(std::fabs(bound->value) < kFractionsBelow)) has_fractions = false;
  }
  const bool reads_low = bounds.low.has_value();
  const bool reads_high = bounds.high.has_value();
  if (!has_fractions) {
    const int64_t free = std::numeric_limits<int64_t>::max() / 2;
    const int64_t low = reads_low ? rounded(*bounds.low, true) : -free;
    const int64_t high = reads_high ? rounded(*bounds.high, false) : free;
    if (low > high) return nothing_between();
    return integers_between(low, high);
  }
  const int64_t low = reads_low ? scaled(*bounds.low, true) : -kUnboundedMillionths;
  const int64_t high = reads_high ? scaled(*bounds.high, false) : kUnboundedMillionths;
  if (low > high) return nothing_between();
  std::vector<Expr> parts;
  if (high >= 0) parts.push_back(decimals_between(std::max<int64_t>(low, 0), high));
  if (low < 0) {
    const int64_t least = high < 0 ? -high : 1;
    parts.push_back(sequence({literal("-"), decimals_between(least, -low)}));
  }
  return choice(std::move(parts));
}

Expr any_number() {
  const Expr whole =
      choice({literal("0"), sequence({digits('1', '9'), any_digits(0, kIntegerDigitsMax - 1)})});
  const Expr fraction = optional(sequence({literal("."), any_digits(1, kFractionDigitsMax)}));
  const Expr exponent =
      optional(sequence({one_of({{'e', 'e'}, {'E', 'E'}}),
                         optional(one_of({{'+', '+'}, {'-', '-'}})), any_digits(1, 2)}));
  return sequence({optional(literal("-")), whole, fraction, exponent});
}

}  // namespace troupe
