// Rotary angles. Only +, -, *, / and fma on doubles: the same bits on every machine.

#include <bit>
#include <cmath>

#include "kernels/ops/ops.h"

namespace troupe {
namespace {

constexpr double kLn2High = 0x1.62e42fefa39efp-1;
constexpr double kLn2Low = 0x1.abc9e3b39803fp-56;
constexpr double kHalfPiHigh = 0x1.921fb54442d18p+0;
constexpr double kHalfPiLow = 0x1.1a62633145c07p-54;
// Adding and subtracting 1.5 * 2^52 rounds a double of magnitude < 2^51 to the nearest integer.
constexpr double kRounder = 0x1.8p+52;

// ln x for normal x > 0: x = m 2^e with m in [0.70, 1.42), ln m = 2 artanh((m - 1) / (m + 1)).
double natural_log(double x) {
  uint64_t bits = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFFULL) | 0x3FF0000000000000ULL);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1.0) / (m + 1.0);
  const double s2 = s * s;
  double series = 0.0;
  for (int k = 23; k >= 1; k -= 2) series = series * s2 + 1.0 / k;
  return exponent * kLn2High + (2.0 * s * series + exponent * kLn2Low);
}

// e^y for |y| < 700.
double exponential(double y) {
  const double n = (y / kLn2High + kRounder) - kRounder;
  const double r = std::fma(-n, kLn2Low, std::fma(-n, kLn2High, y));
  double series = 1.0;
  for (int k = 16; k >= 1; --k) series = series * r / k + 1.0;
  return series * std::bit_cast<double>((static_cast<int64_t>(n) + 1023) << 52);
}

// Taylor series on [-pi/4, pi/4]; the terms left out are below 2^-58.
double sine_near_zero(double r) {
  const double r2 = -r * r;
  double series = 1.0;
  for (int k = 18; k >= 2; k -= 2) series = series * r2 / (k * (k + 1)) + 1.0;
  return r * series;
}

double cosine_near_zero(double r) {
  const double r2 = -r * r;
  double series = 1.0;
  for (int k = 18; k >= 2; k -= 2) series = series * r2 / (k * (k - 1)) + 1.0;
  return series;
}

}  // namespace

void rope_frequencies(double base, double linear_scale, const float* factors, uint32_t rotated_dim,
                      double* frequencies) {
  const double log_base = natural_log(base);
  for (uint32_t i = 0; i < rotated_dim / 2; ++i) {
    const double frequency = exponential(-(2.0 * i / rotated_dim) * log_base) * linear_scale;
    frequencies[i] = factors ? frequency / static_cast<double>(factors[i]) : frequency;
  }
}

void rope_angles(uint32_t position, const double* frequencies, uint32_t rotated_dim,
                 RopePairs pairs, float* cosines, float* sines) {
  const bool adjacent = pairs == RopePairs::kAdjacent;
  for (uint32_t i = 0; i < rotated_dim / 2; ++i) {
    const double angle = position * frequencies[i];
    // angle = quarter * pi/2 + r; positions and frequencies keep quarter below 2^51.
    const double quarter = (angle / kHalfPiHigh + kRounder) - kRounder;
    const double r = std::fma(-quarter, kHalfPiLow, std::fma(-quarter, kHalfPiHigh, angle));
    const double sine = sine_near_zero(r);
    const double cosine = cosine_near_zero(r);
    double c = cosine;
    double s = sine;
    switch (static_cast<int64_t>(quarter) & 3) {
      case 1:
        c = -sine, s = cosine;
        break;
      case 2:
        c = -cosine, s = -sine;
        break;
      case 3:
        c = sine, s = -cosine;
        break;
      default:
        break;
    }
    const uint32_t first = adjacent ? 2 * i : i;
    const uint32_t second = adjacent ? 2 * i + 1 : i + rotated_dim / 2;
    cosines[first] = cosines[second] = static_cast<float>(c);
    sines[first] = sines[second] = static_cast<float>(s);
  }
}

}  // namespace troupe
