#pragma once
// exp and log in double precision, made only of IEEE additions, multiplications and divisions in a
// fixed order, so that every machine and compiler computes the same bits; the C library's differ
// from version to version. exp takes as many lanes as its vectors have, and each lane's result is
// what one lane alone would give.

#include <bit>
#include <cstdint>

namespace troupe {

// Arguments of exp below this give exactly 0; e^-708 is the smallest normal power of e.
inline constexpr double kExpUnderflow = -708.0;

// x = e^x in each lane, for x ≤ 0 (−∞ too), with a relative error below 1e-15. `Doubles` and `Ints`
// are GCC vectors of double and int64_t of one length. Inlined, so that it is compiled for the
// instruction set of its caller.
// Method: x = k·ln 2 + r with |r| ≤ ln 2 / 2; e^r by its Taylor series up to r^13 (the rest is
// below 5e-18); times 2^k.
template <class Doubles, class Ints>
[[gnu::always_inline]] inline void exp_nonpositive(Doubles& x) {
  constexpr double kLog2E = 0x1.71547652b82fep+0;
  // ln 2 in two parts: the first has 21 zero bits at its end, so that k times it is exact.
  constexpr double kLn2High = 0x1.62e42fee00000p-1;
  constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  // Adding 1.5·2^52 rounds to an integer, which then stands in the sum's low bits.
  constexpr double kRound = 0x1.8p52;

  const Doubles zero = {};
  const Ints vanishes = x < zero + kExpUnderflow;
  x = vanishes ? zero : x;
  const Doubles shifted = x * kLog2E + kRound;
  const Doubles k = shifted - kRound;
  const Doubles r = (x - k * kLn2High) - k * kLn2Low;
  // The series in powers of r², even and odd terms apart, so that two chains run side by side.
  const Doubles r2 = r * r;
  Doubles even = r2 * (1.0 / 479001600.0) + 1.0 / 3628800.0;
  Doubles odd = r2 * (1.0 / 6227020800.0) + 1.0 / 39916800.0;
  even = even * r2 + 1.0 / 40320.0;
  odd = odd * r2 + 1.0 / 362880.0;
  even = even * r2 + 1.0 / 720.0;
  odd = odd * r2 + 1.0 / 5040.0;
  even = even * r2 + 1.0 / 24.0;
  odd = odd * r2 + 1.0 / 120.0;
  even = even * r2 + 0.5;
  odd = odd * r2 + 1.0 / 6.0;
  even = even * r2 + 1.0;
  odd = odd * r2 + 1.0;
  const Doubles power = odd * r + even;
  // k's low bits, moved into the exponent's place; power is in [0.7, 1.5), so nothing overflows.
  const Ints bits = reinterpret_cast<Ints>(power) + (reinterpret_cast<Ints>(shifted) << 52);
  x = vanishes ? zero : reinterpret_cast<Doubles>(bits);
}

// The natural logarithm of a normal positive x, with an absolute error below 1e-15 · (1 + |ln x|).
// Method: x = m·2^k with m in [√½, √2); ln m = 2·artanh((m − 1) / (m + 1)) by its series.
[[nodiscard]] inline double log_positive(double x) {
  constexpr double kLn2 = 0x1.62e42fefa39efp-1;
  constexpr double kSqrt2 = 0x1.6a09e667f3bcdp+0;
  const auto bits = std::bit_cast<uint64_t>(x);
  auto k = static_cast<int64_t>(bits >> 52) - 1023;
  constexpr uint64_t kFraction = (uint64_t{1} << 52) - 1, kOne = uint64_t{1023} << 52;
  double m = std::bit_cast<double>((bits & kFraction) | kOne);
  if (m > kSqrt2) {
    m *= 0.5;
    ++k;
  }
  const double s = (m - 1.0) / (m + 1.0);
  const double s2 = s * s;
  double series = 1.0 / 23.0;  // |s| ≤ 0.172: the rest is below 1e-19
  for (int denominator = 21; denominator >= 1; denominator -= 2)
    series = series * s2 + 1.0 / static_cast<double>(denominator);
  return static_cast<double>(k) * kLn2 + 2.0 * s * series;
}

}  // namespace troupe
