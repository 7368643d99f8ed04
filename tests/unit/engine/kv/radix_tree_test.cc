#include "engine/kv/radix_tree.h"

#include <boost/test/unit_test.hpp>
#include <numeric>

#include "engine/kv/block_hash.h"

namespace troupe {
namespace {

std::vector<TokenId> block_of(TokenId first) {
  std::vector<TokenId> tokens(kBlockTokens);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

// Everything has one identity: only the comparison of tokens and parents is left.
class OneIdentity final : public BlockHasher {
 public:
  BlockIdentity root(std::string_view) const override { return {}; }
  BlockIdentity next(const BlockIdentity&, std::span<const TokenId>) const override { return {}; }
};

BOOST_AUTO_TEST_CASE(a_block_is_found_after_its_own_prefix_only) {
  const Xxh3BlockHasher hasher(1);
  RadixTree tree(8, hasher);
  RadixNode* root = tree.acquire_root("");
  RadixNode* first = tree.insert(root, block_of(0), BlockIndex{0});
  RadixNode* second = tree.insert(first, block_of(100), BlockIndex{1});
  BOOST_TEST(tree.find_child(root, block_of(0)) == first);
  BOOST_TEST(tree.find_child(first, block_of(100)) == second);
  BOOST_TEST(tree.find_child(root, block_of(100)) == nullptr);
  BOOST_TEST(tree.find_child(second, block_of(0)) == nullptr);
  tree.check_invariants();
}

BOOST_AUTO_TEST_CASE(one_content_is_stored_once) {
  const Xxh3BlockHasher hasher(1);
  RadixTree tree(8, hasher);
  RadixNode* root = tree.acquire_root("");
  BOOST_TEST(tree.insert(root, block_of(0), BlockIndex{0}) != nullptr);
  BOOST_TEST(tree.insert(root, block_of(0), BlockIndex{1}) == nullptr);
  BOOST_TEST(tree.size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_hash_collision_is_a_miss_and_not_a_wrong_block) {
  const OneIdentity hasher;
  RadixTree tree(8, hasher);
  RadixNode* root = tree.acquire_root("");
  RadixNode* stored = tree.insert(root, block_of(0), BlockIndex{0});
  BOOST_TEST(tree.find_child(root, block_of(1)) == nullptr);
  BOOST_TEST(tree.insert(root, block_of(1), BlockIndex{1}) == nullptr);
  // The same tokens after another prefix collide as well.
  BOOST_TEST(tree.find_child(stored, block_of(0)) == nullptr);
  RadixNode* other_root = tree.acquire_root("other");
  BOOST_TEST(tree.find_child(other_root, block_of(0)) == nullptr);
  BOOST_TEST(tree.find_child(root, block_of(0)) == stored);
}

BOOST_AUTO_TEST_CASE(salts_share_nothing_not_even_a_partial_block) {
  const Xxh3BlockHasher hasher(1);
  RadixTree tree(8, hasher);
  RadixNode* alice = tree.acquire_root("alice");
  RadixNode* bob = tree.acquire_root("bob");
  tree.insert(alice, block_of(0), BlockIndex{0});
  BOOST_TEST(tree.find_child(bob, block_of(0)) == nullptr);
  BOOST_TEST(tree.find_partial(bob, block_of(0)).node == nullptr);
  BOOST_TEST(tree.find_root("carol") == nullptr);
}

BOOST_AUTO_TEST_CASE(the_partial_match_is_the_longest_and_never_a_block_still_being_computed) {
  const Xxh3BlockHasher hasher(1);
  RadixTree tree(8, hasher);
  RadixNode* root = tree.acquire_root("");
  auto five = block_of(0), nine = block_of(0), twelve = block_of(0);
  five[5] = nine[9] = twelve[12] = -1;
  tree.insert(root, five, BlockIndex{0});
  RadixNode* best = tree.insert(root, nine, BlockIndex{1});
  tree.insert(root, twelve, BlockIndex{2})->claimant = SequenceId{1};
  const auto match = tree.find_partial(root, block_of(0));
  BOOST_TEST(match.node == best);
  BOOST_TEST(match.tokens == 9U);
  BOOST_TEST(tree.find_partial(root, std::span(nine).first(3)).tokens == 3U);
}

BOOST_AUTO_TEST_CASE(a_root_goes_with_its_last_sequence_and_its_last_block) {
  const Xxh3BlockHasher hasher(1);
  RadixTree tree(8, hasher);
  RadixNode* root = tree.acquire_root("salt");
  RadixNode* node = tree.insert(root, block_of(0), BlockIndex{0});
  tree.release_root(root);
  BOOST_TEST(tree.find_root("salt") == root);
  tree.erase(node);
  BOOST_TEST(tree.find_root("salt") == nullptr);
  root = tree.acquire_root("salt");
  tree.release_root(root);
  BOOST_TEST(tree.roots() == 0U);
  tree.check_invariants();
}

BOOST_AUTO_TEST_CASE(erased_nodes_are_used_again_and_siblings_stay_linked) {
  const Xxh3BlockHasher hasher(1);
  RadixTree tree(3, hasher);
  RadixNode* root = tree.acquire_root("");
  for (TokenId round = 0; round < 50; ++round) {
    RadixNode* nodes[3];
    for (uint32_t i = 0; i < 3; ++i)
      nodes[i] =
          tree.insert(root, block_of(round * 1000 + static_cast<TokenId>(i) * 100), BlockIndex{i});
    tree.check_invariants();
    for (uint32_t i = 0; i < 3; ++i) {
      tree.erase(nodes[(i + static_cast<uint32_t>(round)) % 3]);
      tree.check_invariants();
    }
  }
  BOOST_TEST(tree.size() == 0U);
}

BOOST_AUTO_TEST_CASE(the_identity_depends_on_secret_salt_prefix_and_every_token) {
  const Xxh3BlockHasher hasher(1), other(2);
  const BlockIdentity root = hasher.root("salt");
  BOOST_TEST((root != other.root("salt")));
  BOOST_TEST((root != hasher.root("pepper")));
  const BlockIdentity block = hasher.next(root, block_of(0));
  BOOST_TEST((block == Xxh3BlockHasher(1).next(root, block_of(0))));
  BOOST_TEST((block != other.next(root, block_of(0))));
  BOOST_TEST((block != hasher.next(block, block_of(0))));
  for (size_t i = 0; i < kBlockTokens; ++i) {
    auto changed = block_of(0);
    changed[i] ^= 1;
    BOOST_TEST((block != hasher.next(root, changed)));
  }
}

}  // namespace
}  // namespace troupe
