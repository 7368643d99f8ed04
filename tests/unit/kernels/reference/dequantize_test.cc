#include "kernels/reference/dequantize.h"

#include <bit>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

using namespace troupe;

namespace {

constexpr uint32_t kNan = 0x7FC00000U;

std::vector<uint8_t> from_hex(const std::string& text) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoul(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

struct Golden {
  std::vector<uint8_t> blocks;
  std::vector<uint32_t> expected;  // float bits; every NaN is kNan
};

// Made by tools/make_dequantize_goldens.py with the Python package `gguf`.
Golden read_golden(const WeightTypeTraits& traits) {
  const std::string path = std::string(TROUPE_SOURCE_DIR "/tests/golden/dequantize/") +
                           std::string(traits.name) + ".txt";
  std::ifstream file(path);
  std::string blocks;
  std::string expected;
  BOOST_REQUIRE_MESSAGE(std::getline(file, blocks) && std::getline(file, expected),
                        path << " cannot be read");
  Golden golden{from_hex(blocks), {}};
  const std::vector<uint8_t> bytes = from_hex(expected);
  for (size_t i = 0; i < bytes.size(); i += 4) {
    golden.expected.push_back(bytes[i] | uint32_t{bytes[i + 1]} << 8U |
                              uint32_t{bytes[i + 2]} << 16U | uint32_t{bytes[i + 3]} << 24U);
  }
  return golden;
}

uint32_t comparable_bits(float value) {
  return std::isnan(value) ? kNan : std::bit_cast<uint32_t>(value);
}

}  // namespace

namespace troupe {
std::ostream& operator<<(std::ostream& out, const WeightTypeTraits& traits) {
  return out << traits.name;
}
}  // namespace troupe

BOOST_AUTO_TEST_SUITE(dequantize_reference)

BOOST_DATA_TEST_CASE(every_type_equals_the_python_package_bit_for_bit,
                     boost::unit_test::data::make(kWeightTypes), traits) {
  const Golden golden = read_golden(traits);
  const size_t weights = golden.blocks.size() / traits.block_bytes * traits.block_weights;
  BOOST_REQUIRE_GE(weights, 512U);
  BOOST_REQUIRE_EQUAL(golden.expected.size(), weights);
  std::vector<float> out(weights);
  dequantize(traits.type, golden.blocks.data(), 1, weights, out.data());
  for (size_t i = 0; i < weights; ++i) {
    BOOST_REQUIRE_MESSAGE(comparable_bits(out[i]) == golden.expected[i],
                          traits.name << " weight " << i << " is " << out[i] << ", expected "
                                      << std::bit_cast<float>(golden.expected[i]));
  }
}

BOOST_DATA_TEST_CASE(rows_and_alignment_do_not_change_the_result,
                     boost::unit_test::data::make(kWeightTypes), traits) {
  const Golden golden = read_golden(traits);
  const size_t rows = 2;
  const size_t row_weights = 4 * traits.block_weights;
  // One byte off, as a tensor in a foreign buffer may be.
  std::vector<uint8_t> shifted(golden.blocks.size() + 1);
  std::copy(golden.blocks.begin(), golden.blocks.end(), shifted.begin() + 1);
  std::vector<float> out(rows * row_weights + 1, 42.0F);
  dequantize(traits.type, shifted.data() + 1, rows, row_weights, out.data());
  for (size_t i = 0; i < rows * row_weights; ++i)
    BOOST_REQUIRE_EQUAL(comparable_bits(out[i]), golden.expected[i]);
  BOOST_TEST(out.back() == 42.0F);
}

BOOST_AUTO_TEST_CASE(a_q4_1_block_reads_low_halves_first) {
  std::vector<uint8_t> block = {0x00, 0x40, 0x00, 0xBC};  // scale 2, minimum -1
  for (uint8_t i = 0; i < 16; ++i) block.push_back(static_cast<uint8_t>(i | (15 - i) << 4));
  std::vector<float> out(32);
  dequantize(WeightType::kQ4_1, block.data(), 1, 32, out.data());
  for (int i = 0; i < 16; ++i) {
    BOOST_TEST(out[static_cast<size_t>(i)] == static_cast<float>(2 * i - 1));
    BOOST_TEST(out[static_cast<size_t>(i + 16)] == static_cast<float>(2 * (15 - i) - 1));
  }
}

BOOST_AUTO_TEST_SUITE_END()
