#include "engine/sample/exact_math.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <random>

namespace troupe {
namespace {

double exp_of(double x) {
  return exp_nonpositive(Double2{x, 0.0})[0];
}

}  // namespace

BOOST_AUTO_TEST_SUITE(exact_math)

BOOST_AUTO_TEST_CASE(exp_agrees_with_the_c_library) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200'000; ++i) {
    const double x =
        -std::ldexp(static_cast<double>(random() >> 11), -53) * (i % 2 == 0 ? 708.0 : 1.0);
    BOOST_REQUIRE_SMALL(exp_of(x) / std::exp(x) - 1.0, 1e-15);
  }
}

BOOST_AUTO_TEST_CASE(exp_is_exact_at_its_ends) {
  BOOST_TEST(exp_of(0.0) == 1.0);
  BOOST_TEST(exp_of(-0.0) == 1.0);
  BOOST_TEST(exp_of(-708.0) > 0.0);
  BOOST_TEST(exp_of(-708.1) == 0.0);
  BOOST_TEST(exp_of(-1e300) == 0.0);
  BOOST_TEST(exp_of(-std::numeric_limits<double>::infinity()) == 0.0);
  BOOST_TEST(exp_of(-1e-300) == 1.0);
}

BOOST_AUTO_TEST_CASE(both_lanes_are_computed_alike) {
  const Double2 pair = exp_nonpositive(Double2{-1.25, -3.5});
  BOOST_TEST(pair[0] == exp_of(-1.25));
  BOOST_TEST(pair[1] == exp_of(-3.5));
}

BOOST_AUTO_TEST_CASE(the_bits_are_pinned) {
  // A change of these changes sampled tokens: it needs a reason, not a new number here.
  BOOST_TEST(exp_of(-1.0) == 0x1.78b56362cef38p-2);
  BOOST_TEST(log_positive(49152.0) == 0x1.59af7ee709312p+3);
}

BOOST_AUTO_TEST_CASE(log_agrees_with_the_c_library) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 100'000; ++i) {
    const double x = std::ldexp(1.0 + std::ldexp(static_cast<double>(random() >> 11), -53),
                                static_cast<int>(random() % 64));
    BOOST_REQUIRE_SMALL(log_positive(x) - std::log(x), 1e-15 * (1.0 + std::log(x)));
  }
  BOOST_TEST(log_positive(1.0) == 0.0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
