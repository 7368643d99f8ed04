#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/linear/linear.h"
#include "tests/unit/kernels/linear/random_matrix.h"

namespace troupe {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// The digits and sums must say the same as the words.
void check_forms_agree(const QuantizedActivations& a) {
  const LinearActivations& v = a.view();
  for (uint32_t m = 0; m < v.rows; ++m) {
    int32_t sum = 0;
    for (uint32_t k = 0; k < v.chunks * kLinearChunk; ++k) {
      const size_t at = m / v.tile_rows * v.tile_stride +
                        (size_t{k / 64} * v.tile_rows + m % v.tile_rows) * 64 + k % 64;
      const int32_t digits = v.high[at] * 64 + v.low[at];
      const int32_t value = k < a.n_in() ? a.value(m, k) : 0;
      BOOST_REQUIRE(digits == value);
      BOOST_REQUIRE((v.low[at] >= 0 && v.low[at] < 64));
      sum += value;
      if (k % kSixSub != kSixSub - 1) continue;
      BOOST_REQUIRE(v.sums[m * v.sum_stride + k / kSixSub] == sum);
      sum = 0;
    }
  }
}

BOOST_AUTO_TEST_CASE(every_instruction_set_quantises_like_the_reference) {
  for (const CpuIsa isa : kCpuIsas) {
    if (!supports(isa) && !(isa == CpuIsa::kAmx && supports(CpuIsa::kAvx512))) continue;
    for (const uint32_t n_in : {1U, 31U, 32U, 64U, 65U, 100U, 576U})
      for (const uint32_t rows : {1U, 5U, 19U}) {
        std::vector<float> x = random_activations(rows, n_in, n_in + rows);
        if (rows > 1) x[n_in + n_in / 2] = 1e20F;  // one giant
        QuantizedActivations want(32, 600, CpuIsa::kScalar), got(32, 600, isa);
        // What an earlier, longer use left behind must not shine through.
        const std::vector<float> before = random_activations(32, 600, 1);
        got.reset(32, 600);
        got.quantize_rows(before.data(), 600, 0, 32);
        want.reset(rows, n_in);
        got.reset(rows, n_in);
        want.quantize_rows(x.data(), n_in, 0, rows);
        got.quantize_rows(x.data(), n_in, rows / 2, rows);
        got.quantize_rows(x.data(), n_in, 0, rows / 2);
        for (uint32_t m = 0; m < rows; ++m) {
          BOOST_TEST(want.row_scale(m) == got.row_scale(m));
          for (uint32_t k = 0; k < n_in; ++k) BOOST_REQUIRE(want.value(m, k) == got.value(m, k));
        }
        check_forms_agree(got);
        got.reset(32, 600);
        got.quantize_rows(before.data(), 600, 0, 32);
        got.reset(rows, n_in, ActivationForms::kWords);
        got.quantize_rows(x.data(), n_in, 0, rows);
        for (uint32_t m = 0; m < rows; ++m) {
          const size_t bytes = want.view().chunks * kLinearChunk * sizeof(int16_t);
          BOOST_TEST(std::memcmp(want.view().words + m * want.view().word_stride,
                                 got.view().words + m * got.view().word_stride, bytes) == 0);
        }
      }
  }
}

BOOST_AUTO_TEST_CASE(quantised_values_are_within_half_a_unit_and_use_twelve_bits) {
  const std::vector<float> x = random_activations(4, 576, 3);
  QuantizedActivations a(4, 576, detect_best_cpu_isa());
  a.reset(4, 576);
  a.quantize_rows(x.data(), 576, 0, 4);
  for (uint32_t m = 0; m < 4; ++m) {
    int32_t largest = 0;
    for (uint32_t k = 0; k < 576; ++k) {
      const double error = x[m * 576 + k] / double{a.row_scale(m)} - a.value(m, k);
      BOOST_REQUIRE(std::abs(error) <= 0.501);
      largest = std::max(largest, std::abs(a.value(m, k)));
    }
    BOOST_TEST(largest == kActivationMax);
  }
}

BOOST_AUTO_TEST_CASE(ties_round_to_even) {
  std::vector<float> x = {2047, 0.5F, 1.5F, -0.5F, -1.5F, 2.5F};
  for (const CpuIsa isa : kCpuIsas) {
    if (!supports(isa)) continue;
    QuantizedActivations a(1, 64, isa);
    a.reset(1, 6);
    a.quantize_rows(x.data(), 6, 0, 1);
    const int32_t want[] = {2047, 0, 2, 0, -2, 2};
    for (uint32_t k = 0; k < 6; ++k) BOOST_TEST(a.value(0, k) == want[k]);
  }
}

BOOST_AUTO_TEST_CASE(rows_without_a_finite_maximum_are_nan_and_tiny_rows_are_zero) {
  for (const CpuIsa isa : kCpuIsas) {
    if (!supports(isa)) continue;
    for (const float bad : {kNan, kInf, -kInf, -kNan}) {
      std::vector<float> x(3 * 128, 1.0F);
      x[128 + 77] = bad;
      for (uint32_t k = 0; k < 128; ++k) x[2 * 128 + k] = 1e-35F;
      QuantizedActivations a(3, 128, isa);
      a.reset(3, 128);
      a.quantize_rows(x.data(), 128, 0, 3);
      BOOST_TEST(a.row_scale(0) == 1.0F / 2047);
      BOOST_TEST(a.value(0, 77) == 2047);
      BOOST_TEST(std::isnan(a.row_scale(1)));
      BOOST_TEST(a.value(1, 5) == 0);
      BOOST_TEST(a.row_scale(2) == 0.0F);
      BOOST_TEST(a.value(2, 5) == 0);
      check_forms_agree(a);
    }
  }
}

}  // namespace
}  // namespace troupe
