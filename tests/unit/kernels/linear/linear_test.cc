#include "kernels/linear/linear.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "kernels/reference/dequantize.h"
#include "kernels/reference/linear_reference.h"
#include "tests/unit/kernels/linear/emulated_tiles.h"
#include "tests/unit/kernels/linear/random_matrix.h"

namespace troupe {
namespace {

constexpr float kUntouched = -12345.0F;

std::vector<CpuIsa> fast_isas() {
  std::vector<CpuIsa> isas;
  for (const CpuIsa isa : kCpuIsas)
    if (isa != CpuIsa::kScalar && supports(isa)) isas.push_back(isa);
  return isas;
}

// [rows][n_out + 3]: the last three columns belong to nobody.
std::vector<float> run(const PackedLinear& w, const std::vector<float>& x, uint32_t rows,
                       CpuIsa isa) {
  QuantizedActivations a(rows, w.n_in(), isa);
  a.reset(rows, w.n_in(), forms_for(w, rows, isa));
  a.quantize_rows(x.data(), w.n_in(), 0, rows);
  const size_t stride = w.n_out() + 3;
  std::vector<float> out(rows * stride, kUntouched);
  linear(w, a, 0, w.n_out(), out.data(), stride);
  return out;
}

// The AMX kernel with its tile instructions in plain C++.
std::vector<float> run_emulated_tiles(const PackedLinear& w, const std::vector<float>& x,
                                      uint32_t rows) {
  QuantizedActivations a(rows, w.n_in(), CpuIsa::kAmx);
  a.reset(rows, w.n_in());
  a.quantize_rows(x.data(), w.n_in(), 0, rows);
  const size_t stride = w.n_out() + 3;
  std::vector<float> out(rows * stride, kUntouched);
  const AlignedBuffer scratch(linear_scratch_bytes(w.view().chunks));
  linear_emulated_tiles(
      {w.view(), a.view(), 0, (w.n_out() + 15) / 16, out.data(), stride, scratch.as<uint8_t>()});
  return out;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::unique_ptr<PackedLinear> packed(const RandomMatrix& m) {
  auto result = PackedLinear::pack(m.type, m.bytes.data(), m.rows, m.inputs);
  BOOST_REQUIRE(result.ok());
  return std::move(result).value();
}

void check_all_isas(const RandomMatrix& m, const std::vector<float>& x, uint32_t rows) {
  const auto w = packed(m);
  const std::vector<float> want = run(*w, x, rows, CpuIsa::kScalar);
  for (const CpuIsa isa : fast_isas())
    BOOST_TEST(same_bits(want, run(*w, x, rows, isa)),
               to_string(isa) << " differs: " << traits_of(m.type).name << " " << m.rows << " x "
                              << m.inputs << ", " << rows << " rows");
  if (rows >= kAmxRowsMin && supports(CpuIsa::kAvx512))
    BOOST_TEST(same_bits(want, run_emulated_tiles(*w, x, rows)),
               "tiles differ: " << traits_of(m.type).name << " " << m.rows << " x " << m.inputs
                                << ", " << rows << " rows");
}

BOOST_AUTO_TEST_CASE(every_type_has_the_same_bits_on_every_instruction_set) {
  for (const WeightType type : kAllWeightTypes)
    for (const uint32_t rows : {1U, 3U, 17U}) {
      const RandomMatrix m = random_matrix(type, 41, 768, rows);
      check_all_isas(m, random_activations(rows, 768, rows), rows);
    }
}

// One of each layout.
constexpr WeightType kLayouts[] = {WeightType::kQ4_1, WeightType::kQ5_0, WeightType::kQ5_1,
                                   WeightType::kQ6_K, WeightType::kQ8_0, WeightType::kF16};

BOOST_AUTO_TEST_CASE(every_number_of_rows_has_the_same_bits_on_every_instruction_set) {
  for (const WeightType type : kLayouts) {
    const uint32_t inputs = type == WeightType::kQ6_K ? 256 : 96;
    const RandomMatrix m = random_matrix(type, 50, inputs, 1);
    for (uint32_t rows = 1; rows <= 70; ++rows)
      check_all_isas(m, random_activations(rows, inputs, rows), rows);
    check_all_isas(m, random_activations(512, inputs, 512), 512);
  }
}

BOOST_AUTO_TEST_CASE(every_shape_has_the_same_bits_on_every_instruction_set) {
  for (const WeightType type : kLayouts)
    for (const uint32_t n_in : {32U, 64U, 160U, 576U, 256U, 1280U}) {
      if (n_in % traits_of(type).block_weights != 0) continue;
      for (const uint32_t n_out : {1U, 7U, 15U, 16U, 17U, 24U, 31U, 33U, 64U, 81U})
        for (const uint32_t rows : {1U, 9U}) {
          const RandomMatrix m = random_matrix(type, n_out, n_in, n_in + n_out);
          check_all_isas(m, random_activations(rows, n_in, rows), rows);
        }
    }
  for (const uint32_t n_in : {1U, 63U, 65U, 577U}) {  // no whole blocks
    const RandomMatrix m = random_matrix(WeightType::kF32, 19, n_in, n_in);
    for (const uint32_t rows : {1U, 9U}) check_all_isas(m, random_activations(rows, n_in, 5), rows);
  }
}

// The reference kernel itself, against its integers one by one.
BOOST_AUTO_TEST_CASE(the_reference_is_the_definition) {
  for (const WeightType type : kAllWeightTypes) {
    const RandomMatrix m = random_matrix(type, 18, 256, 3);
    const auto w = packed(m);
    const std::vector<float> x = random_activations(2, 256, 4);
    QuantizedActivations a(2, 256, CpuIsa::kScalar);
    a.reset(2, 256);
    a.quantize_rows(x.data(), 256, 0, 2);
    const std::vector<float> out = run(*w, x, 2, CpuIsa::kScalar);
    for (uint32_t i = 0; i < 2; ++i)
      for (uint32_t n = 0; n < 18; ++n) {
        int64_t sum = 0;
        for (uint32_t k = 0; k < 256; ++k) sum += int64_t{a.value(i, k)} * w->weight(n, k);
        const double scale = double{a.row_scale(i)} * double{w->row_scale(n)};
        BOOST_TEST(out[i * 21 + n] == static_cast<float>(static_cast<double>(sum) * scale));
      }
  }
}

// All activations at +-2047 and all weights at their extremes, with equal and with opposite signs:
// sums that would wrap if one bit were missing anywhere.
BOOST_AUTO_TEST_CASE(the_largest_possible_sums_are_exact) {
  constexpr uint32_t kInputs = 16384;
  for (const float sign : {1.0F, -1.0F}) {
    std::vector<float> x(9 * kInputs, 3.5F);
    for (uint32_t k = 0; k < kInputs; ++k) x[kInputs + k] = -3.5F;
    RandomMatrix words{WeightType::kF32, 17, kInputs, std::vector<uint8_t>(17 * kInputs * 4)};
    const float weight = sign * 0.7F;
    for (size_t i = 0; i < words.bytes.size(); i += 4) std::memcpy(&words.bytes[i], &weight, 4);
    check_all_isas(words, x, 9);
    check_all_isas(words, x, 2);
    RandomMatrix bytes = random_matrix(WeightType::kQ8_0, 17, kInputs, 1);
    RandomMatrix nibbles = random_matrix(WeightType::kQ4_1, 17, kInputs, 1);
    const uint16_t one = f32_to_f16(sign);
    for (size_t i = 0; i < bytes.bytes.size(); i += 34) {
      std::memset(&bytes.bytes[i], 0x80, 34);  // -128
      std::memcpy(&bytes.bytes[i], &one, 2);
    }
    for (size_t i = 0; i < nibbles.bytes.size(); i += 20) {
      std::memset(&nibbles.bytes[i], i % 40 == 0 ? 0xFF : 0, 20);  // 15 and 0
      const uint16_t minimum = f32_to_f16(i % 40 == 0 ? 0.0F : 15 * sign);
      std::memcpy(&nibbles.bytes[i], &one, 2);
      std::memcpy(&nibbles.bytes[i + 2], &minimum, 2);
    }
    for (const uint32_t rows : {2U, 9U}) {
      check_all_isas(bytes, x, rows);
      check_all_isas(nibbles, x, rows);
    }
  }
}

// The same for 5 and 6 bits; of the latter in the longest row, too, whose sums are nearest to 2^53.
BOOST_AUTO_TEST_CASE(the_largest_possible_sums_of_five_and_six_bits_are_exact) {
  for (const uint32_t inputs : {16384U, kLinearInputsMax})
    for (const float sign : {1.0F, -1.0F}) {
      std::vector<float> x(9 * inputs, 3.5F);
      for (uint32_t k = 0; k < inputs; ++k) x[inputs + k] = -3.5F;
      const uint16_t one = f32_to_f16(sign);
      RandomMatrix fives = random_matrix(WeightType::kQ5_1, 17, inputs, 1);
      for (size_t i = 0; i < fives.bytes.size(); i += 24) {
        std::memset(&fives.bytes[i], i % 48 == 0 ? 0xFF : 0, 24);  // 31 and 0
        const uint16_t minimum = f32_to_f16(i % 48 == 0 ? 0.0F : 31 * sign);
        std::memcpy(&fives.bytes[i], &one, 2);
        std::memcpy(&fives.bytes[i + 2], &minimum, 2);
      }
      RandomMatrix centred = random_matrix(WeightType::kQ5_0, 17, inputs, 1);
      for (size_t i = 0; i < centred.bytes.size(); i += 22) {
        std::memset(&centred.bytes[i], 0, 22);  // -16
        std::memcpy(&centred.bytes[i], &one, 2);
      }
      RandomMatrix sixes = random_matrix(WeightType::kQ6_K, 17, inputs, 1);
      for (size_t i = 0; i < sixes.bytes.size(); i += 210) {
        std::memset(&sixes.bytes[i], 0, 192);          // -32
        std::memset(&sixes.bytes[i + 192], 0x80, 16);  // times -128
        std::memcpy(&sixes.bytes[i + 208], &one, 2);
      }
      RandomMatrix upper = sixes;  // 31 times 127, the largest quants as they are stored
      for (size_t i = 0; i < upper.bytes.size(); i += 210) {
        std::memset(&upper.bytes[i], 0xFF, 192);
        std::memset(&upper.bytes[i + 192], 0x7F, 16);
      }
      for (const uint32_t rows : {2U, 9U})
        for (const RandomMatrix* m : {&fives, &centred, &sixes, &upper})
          check_all_isas(*m, x, rows);
    }
}

// |output - exact| <= sum over k of |x| * (weight error) + |w| * (activation error), plus rounding.
BOOST_AUTO_TEST_CASE(outputs_are_near_the_exact_product_of_the_files_weights) {
  constexpr uint32_t kRows = 5, kInputs = 512;
  for (const WeightType type : kAllWeightTypes) {
    const RandomMatrix m = random_matrix(type, 33, kInputs, 77);
    std::vector<float> w(size_t{m.rows} * kInputs);
    dequantize(type, m.bytes.data(), m.rows, kInputs, w.data());
    const std::vector<float> x = random_activations(kRows, kInputs, 78);
    const auto p = packed(m);
    const std::vector<float> out = run(*p, x, kRows, detect_best_cpu_isa());
    const double units = type == WeightType::kQ8_0 ? 64 : type == WeightType::kQ6_K ? 2048 : 8.5;
    double error = 0, size = 0;
    for (uint32_t i = 0; i < kRows; ++i) {
      float x_max = 0;
      for (uint32_t k = 0; k < kInputs; ++k) x_max = std::max(x_max, std::abs(x[i * kInputs + k]));
      for (uint32_t n = 0; n < m.rows; ++n) {
        double exact = 0, bound = 0;
        const double weight_error = units * p->row_scale(n);
        for (uint32_t k = 0; k < kInputs; ++k) {
          const double xk = x[i * kInputs + k], wk = w[n * kInputs + k];
          exact += xk * wk;
          bound += std::abs(xk) * weight_error + (std::abs(wk) + weight_error) * x_max / 4094;
        }
        const double got = out[i * (m.rows + 3) + n];
        BOOST_REQUIRE(std::abs(got - exact) <= bound * 1.0001 + std::abs(exact) * 1e-6);
        error += (got - exact) * (got - exact);
        size += exact * exact;
      }
    }
    BOOST_TEST(std::sqrt(error / size) < 1e-3, traits_of(type).name);  // in practice, all in all
  }
}

BOOST_AUTO_TEST_CASE(ranges_of_outputs_in_several_threads_equal_the_whole) {
  const RandomMatrix m = random_matrix(WeightType::kQ4_1, 150, 288, 4);
  const auto w = packed(m);
  for (const CpuIsa isa : kCpuIsas) {
    if (!supports(isa)) continue;
    for (const uint32_t rows : {1U, 6U, 40U}) {
      const std::vector<float> x = random_activations(rows, 288, rows);
      const std::vector<float> want = run(*w, x, rows, isa);
      QuantizedActivations a(rows, 288, isa);
      a.reset(rows, 288);
      a.quantize_rows(x.data(), 288, 0, rows);
      std::vector<float> out(want.size(), kUntouched);
      std::thread other([&] { linear(*w, a, 112, 150, out.data() + 112, 153); });
      linear(*w, a, 0, 48, out.data(), 153);
      linear(*w, a, 48, 48, out.data() + 48, 153);  // an empty range
      other.join();
      for (uint32_t i = 0; i < rows; ++i)
        for (uint32_t n = 48; n < 112; ++n) BOOST_REQUIRE(out[i * 153 + n] == kUntouched);
      linear(*w, a, 48, 112, out.data() + 48, 153);
      BOOST_TEST(same_bits(want, out), to_string(isa) << " " << rows);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_rows_outputs_do_not_depend_on_the_other_rows) {
  const RandomMatrix m = random_matrix(WeightType::kQ8_0, 40, 160, 4);
  const auto w = packed(m);
  const std::vector<float> x = random_activations(33, 160, 6);
  const CpuIsa isa = detect_best_cpu_isa();
  const std::vector<float> together = run(*w, x, 33, isa);
  for (uint32_t i = 0; i < 33; ++i) {
    const std::vector<float> alone(x.begin() + i * 160, x.begin() + (i + 1) * 160);
    const std::vector<float> out = run(*w, alone, 1, isa);
    BOOST_TEST(std::memcmp(&together[i * 43], out.data(), 43 * sizeof(float)) == 0);
  }
}

BOOST_AUTO_TEST_CASE(a_row_with_nan_or_infinity_is_nan_and_touches_no_other) {
  const RandomMatrix m = random_matrix(WeightType::kQ4_1, 20, 64, 4);
  const auto w = packed(m);
  for (const uint32_t rows : {3U, 20U}) {
    std::vector<float> x = random_activations(rows, 64, 6);
    const std::vector<float> good = run(*w, x, rows, CpuIsa::kScalar);
    x[64 + 3] = std::numeric_limits<float>::infinity();
    const std::vector<float> want = run(*w, x, rows, CpuIsa::kScalar);
    for (uint32_t n = 0; n < 20; ++n) {
      BOOST_TEST(std::isnan(want[23 + n]));
      BOOST_TEST(want[n] == good[n]);
      BOOST_TEST(want[46 + n] == good[46 + n]);
    }
    check_all_isas(m, x, rows);
  }
}

}  // namespace
}  // namespace troupe
