#include "actors/router/prefix_index.h"

#include <boost/test/unit_test.hpp>

#include <numeric>

namespace troupe {
namespace {

std::vector<TokenId> tokens(size_t count, TokenId first = 0) {
  std::vector<TokenId> out(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}

BOOST_AUTO_TEST_SUITE(prefix_index)

BOOST_AUTO_TEST_CASE(a_worker_is_believed_to_hold_the_full_blocks_of_what_it_was_given) {
  const Xxh3BlockHasher hasher(7);
  PrefixIndex index(hasher);
  index.insert(WorkerId(1), index.chain_of("m", "", tokens(100)), 1000);
  BOOST_TEST(index.cached_tokens(WorkerId(1), index.chain_of("m", "", tokens(200))) == 96U);
  BOOST_TEST(index.cached_tokens(WorkerId(1), index.chain_of("m", "", tokens(40))) == 32U);
  BOOST_TEST(index.cached_tokens(WorkerId(1), index.chain_of("m", "", tokens(100, 1))) == 0U);
  BOOST_TEST(index.cached_tokens(WorkerId(1), index.chain_of("m", "salt", tokens(100))) == 0U);
  BOOST_TEST(index.cached_tokens(WorkerId(1), index.chain_of("n", "", tokens(100))) == 0U);
  BOOST_TEST(index.cached_tokens(WorkerId(1), index.chain_of("", "m", tokens(100))) == 0U);
  BOOST_TEST(index.cached_tokens(WorkerId(2), index.chain_of("m", "", tokens(100))) == 0U);
  index.forget(WorkerId(1));
  BOOST_TEST(index.cached_tokens(WorkerId(1), index.chain_of("m", "", tokens(100))) == 0U);
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_the_pool_is_forgotten_least_recently_used_and_tail_first) {
  const Xxh3BlockHasher hasher(7);
  PrefixIndex index(hasher);
  const auto first = index.chain_of("m", "", tokens(64));
  const auto second = index.chain_of("m", "", tokens(64, 1000));
  index.insert(WorkerId(1), first, 8);
  index.insert(WorkerId(1), second, 8);
  index.insert(WorkerId(1), first, 8);  // used again
  index.insert(WorkerId(1), index.chain_of("m", "", tokens(32, 2000)), 8);
  BOOST_TEST(index.cached_tokens(WorkerId(1), first) == 64U);
  BOOST_TEST(index.cached_tokens(WorkerId(1), second) == 32U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
