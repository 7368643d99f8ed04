#include "apps/node/engine_options.h"

#include <boost/test/unit_test.hpp>

namespace troupe {
namespace {

BOOST_AUTO_TEST_SUITE(engine_options)

BOOST_AUTO_TEST_CASE(kv_is_binary16_unless_8_bits_are_asked_for) {
  BOOST_TEST((kv_type_of("auto", "cpu").value() == KvType::kF16));
  BOOST_TEST((kv_type_of("f16", "cpu").value() == KvType::kF16));
  BOOST_TEST((kv_type_of("int8", "cpu").value() == KvType::kInt8));
}

BOOST_AUTO_TEST_CASE(the_reference_backend_has_fp32_and_says_so_to_who_asks_for_another) {
  BOOST_TEST((kv_type_of("auto", "reference").value() == KvType::kF32));
  for (const char* other : {"f16", "int8"}) {
    const auto refused = kv_type_of(other, "reference");
    BOOST_REQUIRE(!refused.ok());
    BOOST_TEST((refused.status().code() == StatusCode::kInvalidArgument));
    for (const char* word : {other, "--kv-cache-dtype", "--backend cpu", "fp32"})
      BOOST_TEST(refused.status().message().find(word) != std::string::npos, word);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
