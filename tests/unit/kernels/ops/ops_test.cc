#include "kernels/ops/ops.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/reference/float16.h"
#include "kernels/reference/ops_reference.h"
#include "tests/unit/kernels/ops/ops_fixture.h"

namespace troupe::test {
namespace {

constexpr uint32_t kWidths[] = {1, 2, 15, 16, 17, 31, 64, 100, 576, 577, 1536};

BOOST_AUTO_TEST_CASE(exp_is_within_two_units_of_the_last_place) {
  double worst = 0.0;
  for (float x = -87.0F; x <= 88.0F; x += 0.00371F) {
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(exp_reference(x) - exact) / exact);
  }
  BOOST_TEST_MESSAGE("largest relative error of exp: " << worst);
  BOOST_TEST(worst < 0x1p-22);
  BOOST_TEST(exp_reference(0.0F) == 1.0F);
  BOOST_TEST(exp_reference(-1e30F) == exp_reference(-87.0F));
  BOOST_TEST(std::isfinite(exp_reference(std::numeric_limits<float>::infinity())));
  BOOST_TEST(std::isnan(exp_reference(std::numeric_limits<float>::quiet_NaN())));
}

BOOST_AUTO_TEST_CASE(rms_norm_is_bit_equal_on_every_instruction_set) {
  for (uint32_t width : kWidths) {
    Random random(width);
    const std::vector<float> x = random.floats(width, 3.0F), weight = random.floats(width, 2.0F);
    std::vector<float> expected(width);
    scalar_ops().rms_norm(x.data(), weight.data(), 1e-5F, width, expected.data());
    double squares = 0.0;
    for (float v : x) squares += static_cast<double>(v) * v;
    const double r = 1.0 / std::sqrt(squares / width + 1e-5);
    for (uint32_t i = 0; i < width; ++i)
      BOOST_TEST(std::abs(expected[i] - x[i] * r * weight[i]) <= 2e-6);
    for (CpuIsa isa : vector_isas()) {
      std::vector<float> out(width);
      ops_for(isa).rms_norm(x.data(), weight.data(), 1e-5F, width, out.data());
      check_same_bits(out, expected, "rms_norm of width " + std::to_string(width));
    }
  }
}

BOOST_AUTO_TEST_CASE(swiglu_is_bit_equal_and_close_to_its_formula_over_the_whole_range) {
  for (uint32_t width : kWidths) {
    Random random(width);
    std::vector<float> gate = random.floats(width, 120.0F);
    const std::vector<float> up = random.floats(width, 2.0F);
    std::vector<float> expected(width);
    scalar_ops().swiglu(gate.data(), up.data(), width, expected.data());
    for (uint32_t i = 0; i < width; ++i) {
      const double exact = gate[i] / (1.0 + std::exp(-static_cast<double>(gate[i]))) * up[i];
      BOOST_TEST(std::abs(expected[i] - exact) <= 1e-6 * std::abs(exact) + 1e-30);
    }
    for (CpuIsa isa : vector_isas()) {
      std::vector<float> out = gate;
      ops_for(isa).swiglu(out.data(), up.data(), width, out.data());
      check_same_bits(out, expected, "swiglu of width " + std::to_string(width));
    }
  }
}

BOOST_AUTO_TEST_CASE(geglu_is_bit_equal_and_close_to_its_formula_over_the_whole_range) {
  for (uint32_t width : kWidths) {
    for (float magnitude : {0.5F, 6.0F, 120.0F}) {
      Random random(width);
      std::vector<float> gate = random.floats(width, magnitude);
      gate[0] = magnitude > 100.0F ? 1e30F : 0.0F;
      const std::vector<float> up = random.floats(width, 2.0F);
      std::vector<float> expected(width);
      scalar_ops().geglu(gate.data(), up.data(), width, expected.data());
      for (uint32_t i = 0; i < width; ++i) {
        const double x = gate[i];
        const double z = 2.0 * std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x);
        // x (1 + tanh(z / 2)) / 2 without what tanh cancels.
        const double exact = x / (1.0 + std::exp(-z)) * up[i];
        // The rounding of z shows in exp(-z): one part in 2^22 for each unit of it.
        const double bound = 1e-6 * (1.0 + std::abs(std::min(z, 87.0)));
        BOOST_TEST(std::abs(expected[i] - exact) <= bound * std::abs(exact) + 1e-30);
      }
      for (CpuIsa isa : vector_isas()) {
        std::vector<float> out = gate;
        ops_for(isa).geglu(out.data(), up.data(), width, out.data());
        check_same_bits(out, expected, "geglu of width " + std::to_string(width));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(add_scale_and_rotate_are_bit_equal_on_every_instruction_set) {
  for (uint32_t width : {2U, 8U, 14U, 16U, 18U, 30U, 48U, 64U, 128U}) {
    Random random(width);
    const std::vector<float> x = random.floats(width, 3.0F), y = random.floats(width, 3.0F);
    std::vector<double> frequencies(width / 2);
    std::vector<float> cosines(width), sines(width);
    rope_frequencies(100000.0, 1.0, nullptr, width, frequencies.data());
    rope_angles(77, frequencies.data(), width, RopePairs::kAdjacent, cosines.data(), sines.data());
    std::vector<float> sum = x, turned = x, scaled = x;
    scalar_ops().add(sum.data(), y.data(), width);
    scalar_ops().scale(scaled.data(), 25.298221F, width);
    for (uint32_t i = 0; i < width; ++i) BOOST_TEST(scaled[i] == x[i] * 25.298221F);
    scalar_ops().rotate(turned.data(), cosines.data(), sines.data(), width);
    for (uint32_t i = 0; i < width; i += 2) {  // a turn keeps the length of each pair
      const double before = std::hypot(x[i], x[i + 1]);
      BOOST_TEST(std::abs(std::hypot(turned[i], turned[i + 1]) - before) <= 1e-6 * before);
    }
    for (CpuIsa isa : vector_isas()) {
      std::vector<float> a = x, b = x, c = x;
      ops_for(isa).add(a.data(), y.data(), width);
      ops_for(isa).scale(c.data(), 25.298221F, width);
      check_same_bits(c, scaled, "scale of width " + std::to_string(width));
      ops_for(isa).rotate(b.data(), cosines.data(), sines.data(), width);
      check_same_bits(a, sum, "add of width " + std::to_string(width));
      check_same_bits(b, turned, "rotate of width " + std::to_string(width));
    }
  }
}

// Pairs that stand a half apart turn as the same pairs do side by side.
BOOST_AUTO_TEST_CASE(rotated_halves_have_the_bits_of_rotated_neighbours_everywhere) {
  for (uint32_t width : {2U, 8U, 18U, 30U, 32U, 64U, 80U, 128U, 256U}) {
    Random random(width);
    const std::vector<float> x = random.floats(width, 3.0F);
    std::vector<double> frequencies(width / 2);
    std::vector<float> cosines(width), sines(width), neighbours(width), expected(width);
    rope_frequencies(1'000'000.0, 1.0, nullptr, width, frequencies.data());
    rope_angles(77, frequencies.data(), width, RopePairs::kAdjacent, cosines.data(), sines.data());
    const auto half = [&](uint32_t i) { return i / 2 + i % 2 * (width / 2); };
    for (uint32_t i = 0; i < width; ++i) neighbours[i] = x[half(i)];
    scalar_ops().rotate(neighbours.data(), cosines.data(), sines.data(), width);
    for (uint32_t i = 0; i < width; ++i) expected[half(i)] = neighbours[i];
    rope_angles(77, frequencies.data(), width, RopePairs::kHalves, cosines.data(), sines.data());
    std::vector<CpuIsa> isas = vector_isas();
    isas.push_back(CpuIsa::kScalar);
    for (CpuIsa isa : isas) {
      std::vector<float> out = x;
      ops_for(isa).rotate_halves(out.data(), cosines.data(), sines.data(), width);
      check_same_bits(out, expected, "rotate_halves of width " + std::to_string(width));
    }
  }
}

BOOST_AUTO_TEST_CASE(angles_of_rope_are_right_at_every_position_of_a_long_context) {
  std::vector<double> frequencies(32);
  std::vector<float> cosines(64), sines(64);
  rope_frequencies(500000.0, 1.0, nullptr, 64, frequencies.data());
  for (uint32_t i = 0; i < 32; ++i)
    BOOST_TEST(std::abs(frequencies[i] / std::pow(500000.0, -2.0 * i / 64) - 1.0) < 1e-14);
  for (uint32_t position : {0U, 1U, 2U, 3U, 5U, 100U, 8191U, 131071U, 67108863U}) {
    rope_angles(position, frequencies.data(), 64, RopePairs::kAdjacent, cosines.data(),
                sines.data());
    for (uint32_t i = 0; i < 32; ++i) {
      const double angle = position * frequencies[i];
      BOOST_TEST(std::abs(cosines[2 * i] - std::cos(angle)) < 1e-7);
      BOOST_TEST(std::abs(sines[2 * i + 1] - std::sin(angle)) < 1e-7);
    }
  }
}

BOOST_AUTO_TEST_CASE(rope_frequencies_apply_linear_scale_and_factors) {
  const float factors[] = {1.0F, 8.0F};
  double plain[2], scaled[2];
  rope_frequencies(10000.0, 1.0, nullptr, 4, plain);
  rope_frequencies(10000.0, 0.25, factors, 4, scaled);
  BOOST_TEST(plain[0] == 1.0);
  BOOST_TEST(scaled[0] == 0.25);
  BOOST_TEST(scaled[1] == plain[1] * 0.25 / 8.0);
}

// One head's runs of keys and values, filled with something else before.
struct Runs {
  std::vector<std::byte> key, value;

  Runs(const Ops& ops, KvType type, const std::vector<float>& x, uint32_t token)
      : key(kv_key_bytes(type, head_dim(x)), std::byte{0x12}),
        value(kv_value_bytes(type, head_dim(x)), std::byte{0x12}) {
    ops.kv(type).store_key(x.data(), head_dim(x), token, key.data());
    ops.kv(type).store_value(x.data(), head_dim(x), token, value.data());
  }
  static uint32_t head_dim(const std::vector<float>& x) { return static_cast<uint32_t>(x.size()); }
};

constexpr uint32_t kHeadDims[] = {8, 16, 24, 33, 47, 64, 80, 128, 256};

// The same bytes everywhere; those that are no element's, padding's of values nor scale's as
// before.
void check_same_runs(KvType type, const std::vector<float>& x, uint32_t token) {
  const Runs expected(scalar_ops(), type, x, token);
  for (CpuIsa isa : vector_isas()) {
    const Runs runs(ops_for(isa), type, x, token);
    BOOST_TEST((runs.key == expected.key), to_string(type) << " keys of " << x.size());
    BOOST_TEST((runs.value == expected.value), to_string(type) << " values of " << x.size());
  }
}

BOOST_AUTO_TEST_CASE(stored_keys_and_values_are_rounded_and_saturated_alike_everywhere) {
  for (const uint32_t head_dim : kHeadDims) {
    Random random(head_dim);
    std::vector<float> x = random.floats(head_dim, 4.0F);
    x[0] = 1e9F, x[1] = -1e9F, x[2] = std::numeric_limits<float>::infinity(), x[3] = 65519.0F;
    x[4] = std::numeric_limits<float>::quiet_NaN(), x[5] = 1e-8F, x[6] = -3e-8F, x[7] = 6e-5F;
    for (uint32_t token : {0U, 7U, 15U}) {
      check_same_runs(KvType::kF16, x, token);
      const Runs runs(scalar_ops(), KvType::kF16, x, token);
      const auto key = [&](uint32_t dim) {
        return stored_key(KvType::kF16, runs.key.data(), head_dim, token, dim);
      };
      BOOST_TEST(key(0) == 65504.0F);
      BOOST_TEST(key(1) == -65504.0F);
      BOOST_TEST(std::isnan(key(4)));
      BOOST_TEST(stored_value(KvType::kF16, runs.value.data(), head_dim, token, 2) == 65504.0F);
    }
  }
}

BOOST_AUTO_TEST_CASE(eight_bits_are_off_by_half_a_step_at_most_and_the_same_everywhere) {
  for (const uint32_t head_dim : kHeadDims) {
    for (const float magnitude : {1e-12F, 0.03F, 4.0F, 60000.0F}) {
      Random random(head_dim);
      const std::vector<float> x = random.floats(head_dim, magnitude);
      for (uint32_t token : {0U, 7U, 15U}) {
        check_same_runs(KvType::kInt8, x, token);
        const Runs runs(scalar_ops(), KvType::kInt8, x, token);
        for (uint32_t d = 0; d < head_dim; ++d) {
          const uint32_t group = d / kInt8KeyGroup * kInt8KeyGroup;
          const double key_step =
              peak_of(&x[group], std::min(kInt8KeyGroup, head_dim - group)) / 127.0;
          const double value_step = peak_of(x.data(), head_dim) / 127.0;
          const float key = stored_key(KvType::kInt8, runs.key.data(), head_dim, token, d);
          const float value = stored_value(KvType::kInt8, runs.value.data(), head_dim, token, d);
          BOOST_TEST_REQUIRE(std::abs(double{key} - x[d]) <= 0.5001 * key_step);
          BOOST_TEST_REQUIRE(std::abs(double{value} - x[d]) <= 0.5001 * value_step);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(eight_bits_saturate_round_ties_to_even_and_know_zero_from_nan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const auto stored = [](std::vector<float> row) {  // as values of a head of 40, with its scale
    row.resize(40, 0.0F);
    for (uint32_t token : {0U, 9U}) check_same_runs(KvType::kInt8, row, token);
    const Runs runs(scalar_ops(), KvType::kInt8, row, 9);
    std::vector<float> out = {scale_at(runs.value.data(), 40, 9)};
    for (uint32_t d = 0; d < 4; ++d)
      out.push_back(
          static_cast<float>(read_at<int8_t>(runs.value.data(), int8_value_place(d, 9, 48))));
    return out;
  };
  using Row = std::vector<float>;
  BOOST_TEST((stored({127.0F, -127.0F, 126.5F, -126.5F}) == Row{1, 127, -127, 126, -126}));
  BOOST_TEST((stored({254.0F, 1.0F, 3.0F, -5.0F}) == Row{2, 127, 0, 2, -2}));
  BOOST_TEST((stored({infinity, -1e9F, 0.0F, 65504.0F}) == Row{65504.0F / 127, 127, -127, 0, 127}));
  BOOST_TEST((stored({0.0F, -0.0F, 1e-30F, -1e-25F}) == Row{0, 0, 0, 0, 0}));
  BOOST_TEST((stored({kStepsPeakMin, -kStepsPeakMin, 0.0F, 0.0F}) ==
              Row{kStepsPeakMin / 127, 127, -127, 0, 0}));
  const Row bad = stored({1.0F, nan, infinity, -2.0F});
  BOOST_TEST(std::isnan(bad[0]));
  BOOST_TEST((Row{bad.begin() + 1, bad.end()} == Row{0, 0, 0, 0}));
}

BOOST_AUTO_TEST_CASE(plain_linear_layers_are_bit_equal_for_any_number_of_rows) {
  for (uint32_t inputs : {1U, 33U, 576U}) {
    for (uint32_t rows = 1; rows <= 19; ++rows) {
      Random random(inputs + rows);
      const uint32_t outputs = 1 + rows % 16;
      const std::vector<float> weights = random.floats(size_t{inputs} * 16, 1.0F);
      const std::vector<float> x = random.floats(size_t{rows} * inputs, 1.0F);
      std::vector<float> expected(size_t{rows} * 20, 7.0F);
      LinearF32 layer{.weights = weights.data(),
                      .inputs = inputs,
                      .outputs = outputs,
                      .rows = rows,
                      .x = x.data(),
                      .x_stride = inputs,
                      .out = expected.data(),
                      .out_stride = 20};
      scalar_ops().linear_f32(layer);
      for (CpuIsa isa : vector_isas()) {
        std::vector<float> out(expected.size(), 7.0F);
        layer.out = out.data();
        ops_for(isa).linear_f32(layer);
        check_same_bits(out, expected, "linear of " + std::to_string(rows) + " rows");
      }
    }
  }
}

}  // namespace
}  // namespace troupe::test
