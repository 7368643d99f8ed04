#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "kernels/linear/linear.h"
#include "kernels/reference/dequantize.h"
#include "tests/unit/kernels/linear/random_matrix.h"

namespace troupe {
namespace {

std::vector<float> dequantized(const RandomMatrix& m) {
  std::vector<float> values(size_t{m.rows} * m.inputs);
  dequantize(m.type, m.bytes.data(), m.rows, m.inputs, values.data());
  return values;
}

// The bounds that docs/adr/0002 states, in units of the row's scale.
double bound_in_units(WeightType type) {
  switch (type) {
    case WeightType::kQ4_0:
    case WeightType::kQ4_1:
    case WeightType::kQ4_K:
      return 4.5;
    case WeightType::kQ5_0:
    case WeightType::kQ5_1:
    case WeightType::kQ5_K:
      return 8.5;
    case WeightType::kQ8_0:
      return 64;
    case WeightType::kQ6_K:
      return 2048;
    default:
      return 0.5;
  }
}

BOOST_AUTO_TEST_CASE(packed_weights_of_every_type_are_within_the_stated_bound) {
  for (const WeightType type : kAllWeightTypes) {
    const RandomMatrix m = random_matrix(type, 37, 512, 7);
    const auto packed = PackedLinear::pack(type, m.bytes.data(), m.rows, m.inputs);
    BOOST_REQUIRE(packed.ok());
    const std::vector<float> exact = dequantized(m);
    double worst = 0;
    for (uint32_t n = 0; n < m.rows; ++n)
      for (uint32_t k = 0; k < m.inputs; ++k) {
        const double scale = packed.value()->row_scale(n);
        const double value = packed.value()->weight(n, k) * scale;
        // The reference rounds q * d + m to float; that is the second term.
        const double error = std::abs(value - exact[n * m.inputs + k]);
        worst = std::max(worst, (error - 1e-6 * std::abs(value)) / scale);
      }
    BOOST_TEST(worst <= bound_in_units(type), traits_of(type).name << ": " << worst);
    BOOST_TEST(worst > bound_in_units(type) / 4,
               traits_of(type).name << " is not tight: " << worst);
  }
}

BOOST_AUTO_TEST_CASE(integers_stay_within_the_bits_that_the_kernels_rely_on) {
  for (const WeightType type : kAllWeightTypes) {
    const RandomMatrix m = random_matrix(type, 16, 512, 8);
    const auto packed = PackedLinear::pack(type, m.bytes.data(), m.rows, m.inputs);
    BOOST_REQUIRE(packed.ok());
    const int32_t most = type == WeightType::kQ8_0   ? 128 * kByteScaleMax
                         : type == WeightType::kQ6_K ? kSixFactorMax * kSixScaleMax
                                                     : kWeightMax;
    int32_t largest = 0;
    for (uint32_t n = 0; n < m.rows; ++n)
      for (uint32_t k = 0; k < m.inputs; ++k)
        largest = std::max(largest, std::abs(packed.value()->weight(n, k)));
    BOOST_TEST(largest <= most);
    BOOST_TEST(largest >= most / 2);  // the bits are used
  }
}

BOOST_AUTO_TEST_CASE(a_symmetric_format_keeps_its_zeros) {
  for (const WeightType type :
       {WeightType::kQ4_0, WeightType::kQ5_0, WeightType::kQ6_K, WeightType::kQ8_0}) {
    const RandomMatrix m = random_matrix(type, 16, 512, 9);
    const auto packed = PackedLinear::pack(type, m.bytes.data(), m.rows, m.inputs);
    const std::vector<float> exact = dequantized(m);
    uint32_t zeros = 0;
    for (uint32_t n = 0; n < m.rows; ++n)
      for (uint32_t k = 0; k < m.inputs; ++k) {
        if (exact[n * m.inputs + k] != 0) continue;
        ++zeros;
        BOOST_TEST(packed.value()->weight(n, k) == 0);
      }
    BOOST_TEST(zeros > 0U);
  }
}

BOOST_AUTO_TEST_CASE(rows_packed_in_several_threads_equal_rows_packed_at_once) {
  const RandomMatrix m = random_matrix(WeightType::kQ4_1, 70, 96, 10);
  const auto whole = PackedLinear::pack(m.type, m.bytes.data(), m.rows, m.inputs);
  auto parts = PackedLinear::create(m.type, m.rows, m.inputs);
  BOOST_REQUIRE(whole.ok() && parts.ok());
  Status first, second;
  std::thread other([&] { first = parts.value()->pack_rows(m.bytes.data(), 32, 70); });
  second = parts.value()->pack_rows(m.bytes.data(), 0, 32);
  other.join();
  BOOST_TEST((first.ok() && second.ok()));
  for (uint32_t n = 0; n < m.rows; ++n) {
    BOOST_TEST(whole.value()->row_scale(n) == parts.value()->row_scale(n));
    for (uint32_t k = 0; k < m.inputs; ++k)
      BOOST_REQUIRE(whole.value()->weight(n, k) == parts.value()->weight(n, k));
  }
}

// The bits of a weight that docs/adr/0002 states.
double packed_bits(WeightType type) {
  switch (type) {
    case WeightType::kQ4_0:
    case WeightType::kQ4_1:
    case WeightType::kQ4_K:
      return 5;
    case WeightType::kQ5_0:
      return 5.5;
    case WeightType::kQ5_1:
    case WeightType::kQ5_K:
      return 6;
    case WeightType::kQ6_K:
      return 6.625;
    case WeightType::kQ8_0:
      return 8.5;
    default:
      return 16;
  }
}

BOOST_AUTO_TEST_CASE(every_type_takes_the_bits_that_are_stated) {
  for (const WeightType type : kAllWeightTypes) {
    const auto packed = PackedLinear::create(type, 1536, 768);
    BOOST_REQUIRE(packed.ok());
    const double bits = 8.0 * (packed.value()->bytes() - 1536 * sizeof(float)) / (1536 * 768);
    BOOST_TEST(bits == packed_bits(type), traits_of(type).name);
  }
}

// Rows of more inputs have coarser scales, so that their sums stay exact in double.
BOOST_AUTO_TEST_CASE(six_bit_weights_of_long_rows_keep_their_sums_exact) {
  for (const uint32_t inputs : {256U, 32768U, 33024U, 53248U, kLinearInputsMax}) {
    const double most = six_scale_max(inputs);
    BOOST_TEST(most >= 8194);
    BOOST_TEST(most <= kSixScaleMax);
    BOOST_TEST(most * kSixFactorMax * kActivationMax * inputs <= 0x1p53);
    const RandomMatrix m = random_matrix(WeightType::kQ6_K, 2, inputs, 12);
    const auto packed = PackedLinear::pack(m.type, m.bytes.data(), m.rows, m.inputs);
    BOOST_REQUIRE(packed.ok());
    const std::vector<float> exact = dequantized(m);
    for (uint32_t n = 0; n < m.rows; ++n)
      for (uint32_t k = 0; k < inputs; ++k) {
        const double scale = packed.value()->row_scale(n);
        BOOST_REQUIRE(std::abs(packed.value()->weight(n, k)) <= most * kSixFactorMax);
        const double error = packed.value()->weight(n, k) * scale - exact[n * inputs + k];
        BOOST_REQUIRE(std::abs(error) <= 2048.001 * scale);
      }
  }
}

BOOST_AUTO_TEST_CASE(a_row_of_zeros_has_scale_zero) {
  for (const WeightType type : kAllWeightTypes) {
    const std::vector<uint8_t> zeros(16 * row_bytes(type, 256), 0);
    const auto packed = PackedLinear::pack(type, zeros.data(), 16, 256);
    BOOST_REQUIRE(packed.ok());
    BOOST_TEST(packed.value()->row_scale(3) == 0.0F);
    BOOST_TEST(packed.value()->weight(3, 5) == 0);
  }
}

BOOST_AUTO_TEST_CASE(a_weight_that_is_no_number_is_data_loss_naming_the_row) {
  for (const WeightType type : kAllWeightTypes) {
    for (const uint16_t bad : {0x7C00, 0x7E00}) {  // infinity, NaN
      RandomMatrix m = random_matrix(type, 20, 256, 11);
      const auto places = half_places(type);
      const size_t at = 18 * row_bytes(type, 256);
      const float wide = f16_to_f32(bad);
      const uint16_t brain = f32_to_bf16(wide);
      const uint16_t half = type == WeightType::kBF16 ? brain : bad;
      std::memcpy(&m.bytes[at + (places.empty() ? 0 : places.back())], &half, 2);
      if (type == WeightType::kF32) std::memcpy(&m.bytes[at], &wide, 4);
      // A K block multiplies its scales with 6-bit ones; a zero there gives NaN, which is no number
      // either.
      const auto packed = PackedLinear::pack(type, m.bytes.data(), m.rows, m.inputs);
      BOOST_REQUIRE_MESSAGE(!packed.ok(), traits_of(type).name);
      BOOST_TEST((packed.status().code() == StatusCode::kDataLoss));
      BOOST_TEST(packed.status().message().find("Row 18") != std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(impossible_sizes_are_refused_with_the_rule) {
  const auto code = [](WeightType type, uint32_t n_out, uint32_t n_in) {
    const auto packed = PackedLinear::create(type, n_out, n_in);
    BOOST_REQUIRE(!packed.ok());
    BOOST_TEST(packed.status().message().find(traits_of(type).name) != std::string::npos);
    return packed.status().code();
  };
  BOOST_TEST((code(WeightType::kQ4_1, 16, 33) == StatusCode::kInvalidArgument));
  BOOST_TEST((code(WeightType::kQ6_K, 16, 128) == StatusCode::kInvalidArgument));
  BOOST_TEST((code(WeightType::kF32, 0, 32) == StatusCode::kInvalidArgument));
  BOOST_TEST((code(WeightType::kF32, 16, 0) == StatusCode::kInvalidArgument));
  BOOST_TEST((code(WeightType::kF32, 16, kLinearInputsMax + 1) == StatusCode::kInvalidArgument));
  BOOST_TEST((code(WeightType::kF32, kLinearOutputsMax + 1, 1) == StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace troupe
