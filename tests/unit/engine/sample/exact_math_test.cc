#include "engine/sample/exact_math.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "engine/sample/exponentials.h"

namespace troupe {
namespace {

using Double2 = double __attribute__((vector_size(16)));
using Int64x2 = int64_t __attribute__((vector_size(16)));

double exp_of(double x) {
  Double2 lanes = {x, 0.0};
  exp_nonpositive<Double2, Int64x2>(lanes);
  return lanes[0];
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
  Double2 pair = {-1.25, -3.5};
  exp_nonpositive<Double2, Int64x2>(pair);
  BOOST_TEST(pair[0] == exp_of(-1.25));
  BOOST_TEST(pair[1] == exp_of(-3.5));
}

// The machine's widest vectors against one value at a time, for lengths with and without a rest.
BOOST_AUTO_TEST_CASE(rows_are_weighed_and_summed_as_one_value_at_a_time) {
  std::mt19937_64 random(3);
  for (const size_t count : {1U, 7U, 8U, 9U, 64U, 1003U}) {
    std::vector<float> logits(count);
    for (float& logit : logits)
      logit = -40.0F * std::ldexp(static_cast<float>(random() >> 40), -24);
    logits[count / 2] = 3.0F;
    if (count > 8) logits[3] = -std::numeric_limits<float>::infinity();
    std::vector<double> weights(count);
    weigh(logits, 3.0F, 0.7F, weights);
    double sums[8] = {};
    for (size_t i = 0; i < count; ++i) {
      const double distance = static_cast<double>(logits[i]) - 3.0;
      BOOST_REQUIRE_EQUAL(weights[i], exp_of(distance / static_cast<double>(0.7F)));
      sums[i % 8] += exp_of(distance);
    }
    BOOST_TEST(sum_exponentials(logits, 3.0F) == ((sums[0] + sums[1]) + (sums[2] + sums[3])) +
                                                     ((sums[4] + sums[5]) + (sums[6] + sums[7])));
  }
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
