#include "engine/kv/eviction.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <vector>

namespace troupe {
namespace {

BOOST_AUTO_TEST_CASE(the_least_recently_inserted_block_is_in_front) {
  LruEviction lru(4);
  for (const uint32_t block : {2U, 0U, 3U}) lru.insert(BlockIndex{block});
  BOOST_TEST(lru.front().value == 2U);
  lru.remove(BlockIndex{2});
  lru.insert(BlockIndex{2});
  BOOST_TEST(lru.front().value == 0U);
  lru.remove(BlockIndex{3});
  lru.remove(BlockIndex{0});
  BOOST_TEST(lru.front().value == 2U);
  lru.remove(BlockIndex{2});
  BOOST_TEST(lru.size() == 0U);
}

BOOST_AUTO_TEST_CASE(any_mix_of_insertions_and_removals_keeps_a_naive_lists_order) {
  constexpr uint32_t kBlocks = 9;
  LruEviction lru(kBlocks);
  std::vector<uint32_t> naive;
  uint64_t state = 1;
  for (int i = 0; i < 20'000; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const auto block = static_cast<uint32_t>((state >> 33) % kBlocks);
    const auto place = std::find(naive.begin(), naive.end(), block);
    if (place == naive.end()) {
      naive.push_back(block);
      lru.insert(BlockIndex{block});
    } else {
      naive.erase(place);
      lru.remove(BlockIndex{block});
    }
    BOOST_TEST_REQUIRE(lru.size() == naive.size());
    if (!naive.empty()) BOOST_TEST_REQUIRE(lru.front().value == naive.front());
  }
}

}  // namespace
}  // namespace troupe
