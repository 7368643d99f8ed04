#include "apps/node/kv_pool_sizes.h"

#include <boost/test/unit_test.hpp>

#include "engine/kv/window.h"

namespace troupe {
namespace {

// Gemma 3 270M: 3 layers see everything, 15 have a window; 16 KiB of a block in each.
constexpr uint64_t kLayer = 16 * 1024;
constexpr KvPoolNeeds kGemma{.block_bytes = 3 * kLayer,
                             .window_block_bytes = 15 * kLayer,
                             .window = 512,
                             .context_tokens = 32768,
                             .step_tokens_max = 512};

BOOST_AUTO_TEST_SUITE(kv_pool_sizes_of)

BOOST_AUTO_TEST_CASE(both_pools_fill_the_memory_and_hold_more_tokens_than_one_would) {
  for (const uint64_t mib : {100U, 1000U, 4096U}) {
    const uint64_t bytes = mib << 20;
    const KvPoolSizes sizes = kv_pool_sizes(bytes, kGemma);
    const uint64_t used =
        sizes.blocks * kGemma.block_bytes + sizes.window_blocks * kGemma.window_block_bytes;
    BOOST_TEST(used <= bytes);
    BOOST_TEST(used + kGemma.block_bytes + kGemma.window_block_bytes > bytes);
    BOOST_TEST(sizes.blocks >= 2 * (bytes / (18 * kLayer)));
    BOOST_TEST(sizes.window_blocks * 4 >= sizes.blocks);
  }
}

BOOST_AUTO_TEST_CASE(a_small_pool_still_serves_one_long_sequence) {
  const KvPoolSizes sizes = kv_pool_sizes(uint64_t{30} << 20, kGemma);
  BOOST_TEST(sizes.window_blocks == window_blocks_needed(512, 512));
  BOOST_TEST(sizes.blocks > sizes.window_blocks);
  // Where that does not fit either, both kinds are alike.
  const KvPoolSizes tiny = kv_pool_sizes(40 * 18 * kLayer, kGemma);
  BOOST_TEST(tiny.blocks == 40U);
  BOOST_TEST(tiny.window_blocks == 40U);
  BOOST_TEST(kv_pool_sizes(17 * kLayer, kGemma).blocks == 0U);
}

BOOST_AUTO_TEST_CASE(a_window_as_long_as_the_context_needs_no_fewer_blocks) {
  KvPoolNeeds needs = kGemma;
  needs.context_tokens = 256;
  BOOST_TEST(window_blocks_for(16, needs) == 16U);
  BOOST_TEST(window_blocks_for(160, needs) == 44U);
}

BOOST_AUTO_TEST_CASE(windowed_blocks_asked_for_leave_the_rest_to_the_others) {
  KvPoolNeeds needs = kGemma;
  needs.window_blocks = 1000;
  const KvPoolSizes sizes = kv_pool_sizes(uint64_t{1000} << 20, needs);
  BOOST_TEST(sizes.window_blocks == 1000U);
  BOOST_TEST(sizes.blocks == ((uint64_t{1000} << 20) - 1000 * 15 * kLayer) / (3 * kLayer));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
