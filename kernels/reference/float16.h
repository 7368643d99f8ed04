#pragma once
// Exact conversions between float and the 16-bit formats, in integer arithmetic: the same bits on
// every machine, whatever the compiler and the rounding mode. NaN keeps its sign and the payload
// bits that fit, and becomes quiet when it is narrowed.

#include <bit>
#include <cstdint>

namespace troupe {

// IEEE 754 binary16 to binary32; exact for every input.
[[nodiscard]] constexpr float f16_to_f32(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000U) << 16U;
  const uint32_t exponent = (half >> 10U) & 0x1FU;
  const uint32_t fraction = half & 0x3FFU;
  if (exponent == 0x1FU) return std::bit_cast<float>(sign | 0x7F800000U | (fraction << 13U));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112U) << 23U) | (fraction << 13U));
  // Zero and subnormals are fraction * 2^-24, which binary32 holds as a normal number (or zero).
  const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

// Binary32 to binary16, to nearest, ties to even; overflow gives infinity.
[[nodiscard]] constexpr uint16_t f32_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16U) & 0x8000U);
  const uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) {  // NaN
    return static_cast<uint16_t>(sign | 0x7E00U | ((magnitude >> 13U) & 0x1FFU));
  }
  if (magnitude >= 0x477FF000U) return static_cast<uint16_t>(sign | 0x7C00U);  // >= 65520
  if (magnitude >= 0x38800000U) {                                              // >= 2^-14: normal
    // Adding just under half of the last kept place, plus its own last bit, rounds ties to even; a
    // carry runs into the exponent, as it must.
    const uint32_t rounded = magnitude + 0xFFFU + ((magnitude >> 13U) & 1U);
    return static_cast<uint16_t>(sign | ((rounded - 0x38000000U) >> 13U));
  }
  if (magnitude < 0x33000000U) return sign;  // < 2^-25: rounds to zero
  // Subnormal: the result counts units of 2^-24.
  const uint32_t exponent = magnitude >> 23U;
  const uint32_t significand = (magnitude & 0x7FFFFFU) | 0x800000U;
  const uint32_t shift = 126U - exponent;  // 14 .. 24
  const uint32_t kept = significand >> shift;
  const uint32_t rest = significand & ((1U << shift) - 1U);
  const uint32_t half = 1U << (shift - 1U);
  const uint32_t up = (rest > half || (rest == half && (kept & 1U) != 0)) ? 1U : 0U;
  return static_cast<uint16_t>(sign | (kept + up));
}

// bfloat16 to binary32; exact for every input.
[[nodiscard]] constexpr float bf16_to_f32(uint16_t brain) {
  return std::bit_cast<float>(static_cast<uint32_t>(brain) << 16U);
}

// Binary32 to bfloat16, to nearest, ties to even; overflow gives infinity.
[[nodiscard]] constexpr uint16_t f32_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<uint16_t>((bits >> 16U) | 0x40U);
  return static_cast<uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}

}  // namespace troupe
