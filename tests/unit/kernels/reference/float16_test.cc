#include "kernels/reference/float16.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

using namespace troupe;

BOOST_AUTO_TEST_SUITE(float16)

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// binary16 by its definition, in double.
double half_by_definition(uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1F;
  const int fraction = bits & 0x3FF;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

uint32_t bits_of(float value) {
  return std::bit_cast<uint32_t>(value);
}

// Checks narrowing at, just below and just above the middle between two neighbours.
template <class Widen, class Narrow>
void check_between(uint16_t lower, Widen widen, Narrow narrow) {
  const auto upper = static_cast<uint16_t>(lower + 1);
  const auto middle = static_cast<float>((double{widen(lower)} + double{widen(upper)}) / 2);
  const uint16_t even = (lower & 1U) == 0 ? lower : upper;
  BOOST_REQUIRE_EQUAL(narrow(middle), even);
  BOOST_REQUIRE_EQUAL(narrow(std::nextafter(middle, 0.0F)), lower);
  BOOST_REQUIRE_EQUAL(narrow(std::nextafter(middle, kInfinity)), upper);
  BOOST_REQUIRE_EQUAL(narrow(-middle), even | 0x8000U);
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_finite_half_widens_to_its_defined_value) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    if ((half & 0x7C00U) == 0x7C00U) continue;
    BOOST_REQUIRE_EQUAL(bits_of(f16_to_f32(half)),
                        bits_of(static_cast<float>(half_by_definition(half))));
  }
}

BOOST_AUTO_TEST_CASE(infinities_and_nans_of_a_half_stay_what_they_are) {
  BOOST_TEST(f16_to_f32(0x7C00) == kInfinity);
  BOOST_TEST(f16_to_f32(0xFC00) == -kInfinity);
  for (uint32_t bits = 0x7C01; bits < 0x8000; ++bits) {
    BOOST_REQUIRE(std::isnan(f16_to_f32(static_cast<uint16_t>(bits))));
    BOOST_REQUIRE(std::isnan(f16_to_f32(static_cast<uint16_t>(bits | 0x8000U))));
  }
}

BOOST_AUTO_TEST_CASE(every_half_survives_the_way_to_float_and_back) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const bool nan = (half & 0x7FFFU) > 0x7C00U;
    const auto expected = static_cast<uint16_t>(nan ? half | 0x200U : half);
    BOOST_REQUIRE_EQUAL(f32_to_f16(f16_to_f32(half)), expected);
  }
}

BOOST_AUTO_TEST_CASE(a_float_between_two_halves_goes_to_the_nearest_and_a_tie_to_the_even_one) {
  for (uint32_t bits = 0; bits < 0x7BFF; ++bits)
    check_between(static_cast<uint16_t>(bits), f16_to_f32, f32_to_f16);
}

BOOST_AUTO_TEST_CASE(a_float_beyond_the_range_of_halves_becomes_infinite_or_zero) {
  BOOST_TEST(f32_to_f16(65519.996F) == 0x7BFF);
  BOOST_TEST(f32_to_f16(65520.0F) == 0x7C00);
  BOOST_TEST(f32_to_f16(kInfinity) == 0x7C00);
  BOOST_TEST(f32_to_f16(-std::numeric_limits<float>::max()) == 0xFC00);
  BOOST_TEST(f32_to_f16(std::numeric_limits<float>::denorm_min()) == 0x0000);
  BOOST_TEST(f32_to_f16(-0.0F) == 0x8000);
  BOOST_TEST((f32_to_f16(std::numeric_limits<float>::quiet_NaN()) & 0x7FFF) == 0x7E00);
}

BOOST_AUTO_TEST_CASE(every_bfloat16_survives_the_way_to_float_and_back) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto brain = static_cast<uint16_t>(bits);
    const bool nan = (brain & 0x7FFFU) > 0x7F80U;
    const auto expected = static_cast<uint16_t>(nan ? brain | 0x40U : brain);
    BOOST_REQUIRE_EQUAL(f32_to_bf16(bf16_to_f32(brain)), expected);
  }
}

BOOST_AUTO_TEST_CASE(a_float_between_two_bfloat16s_goes_to_the_nearest_and_a_tie_to_the_even_one) {
  for (uint32_t bits = 0; bits < 0x7F7F; ++bits)
    check_between(static_cast<uint16_t>(bits), bf16_to_f32, f32_to_bf16);
  BOOST_TEST(f32_to_bf16(std::numeric_limits<float>::max()) == 0x7F80);
}

BOOST_AUTO_TEST_SUITE_END()
