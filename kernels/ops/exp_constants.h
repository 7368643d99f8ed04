#pragma once
// The constants of our exponential and of what is made of it, shared by scalar and vector forms.

namespace troupe::exp_constants {

inline constexpr float kMin = -87.0F;  // 2^n stays a normal number
inline constexpr float kMax = 88.0F;
inline constexpr float kLog2E = 0x1.715476p+0F;
// Adding and subtracting 1.5 * 2^23 rounds a float of magnitude < 2^22 to the nearest integer.
inline constexpr float kRounder = 12582912.0F;
// ln 2 as the sum of two floats.
inline constexpr float kLn2High = 0x1.62e430p-1F;
inline constexpr float kLn2Low = -0x1.05c610p-29F;
// 1/7!, 1/6!, ... 1/0!
inline constexpr float kTaylor[8] = {1.0F / 5040.0F, 1.0F / 720.0F, 1.0F / 120.0F, 1.0F / 24.0F,
                                     1.0F / 6.0F,    0.5F,          1.0F,          1.0F};
// Weights of attention below e^this are zero: they are far under the rounding of the sum, and so
// no product with a stored value is ever subnormal.
inline constexpr float kAttentionCut = -40.0F;
// gelu's 2 sqrt(2 / pi), and that times its 0.044715.
inline constexpr float kGeluLinear = 0x1.988454p+0F;
inline constexpr float kGeluCubic = 0x1.2444f2p-4F;

}  // namespace troupe::exp_constants
