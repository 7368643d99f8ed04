#include "base/philox.h"

#include <boost/test/unit_test.hpp>

#include <set>

BOOST_AUTO_TEST_SUITE(philox)

// Known answers of the authors' own test vectors (Random123, kat_vectors, philox4x32 10).
BOOST_AUTO_TEST_CASE(gives_the_published_known_answers) {
  using Words = std::array<uint32_t, 4>;
  const Words zeros = troupe::philox4x32({0, 0, 0, 0}, {0, 0});
  BOOST_TEST((zeros == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t ones = 0xffffffff;
  const Words all = troupe::philox4x32({ones, ones, ones, ones}, {ones, ones});
  BOOST_TEST((all == Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  const Words pi = troupe::philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                                      {0xa4093822, 0x299f31d0});
  BOOST_TEST((pi == Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

BOOST_AUTO_TEST_CASE(uniform_is_in_the_half_open_unit_interval_and_depends_on_each_argument) {
  std::set<double> seen;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    for (uint64_t position = 0; position < 64; ++position) {
      for (uint32_t stream = 0; stream < 2; ++stream) {
        const double x = troupe::philox_uniform(seed, position, stream);
        BOOST_TEST((x >= 0.0 && x < 1.0));
        seen.insert(x);
      }
    }
  }
  BOOST_TEST(seen.size() == 8U * 64U * 2U);
}

BOOST_AUTO_TEST_SUITE_END()
