#include "base/os/memory.h"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(memory)

BOOST_AUTO_TEST_CASE(the_available_memory_of_this_machine_is_plausible) {
  const auto available = troupe::available_memory_bytes();
  BOOST_REQUIRE(available.ok());
  BOOST_TEST(available.value() > (uint64_t{1} << 20));
  BOOST_TEST(available.value() < (uint64_t{1} << 50));
}

BOOST_AUTO_TEST_SUITE_END()
