#include "engine/kv/block_pool.h"

#include <boost/test/unit_test.hpp>

namespace troupe {
namespace {

constexpr SequenceId kOwner{7};

BOOST_AUTO_TEST_CASE(a_block_goes_through_its_whole_life_and_comes_back) {
  BlockPool pool(2);
  const BlockIndex block = pool.allocate(kOwner);
  BOOST_TEST(pool.owner(block).value == kOwner.value);
  pool.complete(block);
  pool.lock(block);
  BOOST_TEST(pool.users(block) == 2U);
  BOOST_TEST(!pool.unlock(block));
  BOOST_TEST(pool.unlock(block));
  BOOST_TEST(to_string(pool.state(block)) == "cached");
  pool.lock(block);
  BOOST_TEST(to_string(pool.state(block)) == "held");
  BOOST_TEST(pool.unlock(block));
  pool.evict(block);
  BOOST_TEST(pool.free_count() == 2U);
  pool.check_invariants();
}

BOOST_AUTO_TEST_CASE(abandoned_and_private_blocks_become_free_at_once) {
  BlockPool pool(2);
  const BlockIndex first = pool.allocate(kOwner);
  const BlockIndex second = pool.allocate(kOwner);
  BOOST_TEST(pool.free_count() == 0U);
  pool.abandon(first);
  pool.complete(second);
  pool.discard(second);
  BOOST_TEST(pool.free_count() == 2U);
  pool.check_invariants();
}

// The model of one block that the pool must agree with.
struct NaiveBlock {
  BlockState state = BlockState::kFree;
  uint32_t users = 0;
};

enum class Operation {
  kAllocate,
  kComplete,
  kAbandon,
  kLock,
  kUnlock,
  kDiscard,
  kEvict,
  kLease,
  kEndLease
};

bool is_legal(Operation operation, const NaiveBlock& block) {
  switch (operation) {
    case Operation::kAllocate:
      return block.state == BlockState::kFree;
    case Operation::kComplete:
    case Operation::kAbandon:
    case Operation::kLease:
      return block.state == BlockState::kComputing;
    case Operation::kEndLease:
      return block.state == BlockState::kLeased;
    case Operation::kLock:
      return block.state == BlockState::kHeld || block.state == BlockState::kCached;
    case Operation::kUnlock:
      return block.state == BlockState::kHeld;
    case Operation::kDiscard:
      return block.state == BlockState::kHeld && block.users == 1;
    case Operation::kEvict:
      return block.state == BlockState::kCached;
  }
  return false;
}

void apply(Operation operation, BlockIndex block, BlockPool& pool, NaiveBlock& naive) {
  switch (operation) {
    case Operation::kAllocate:
      naive.state = BlockState::kComputing;
      break;  // done by the caller, who learns the index
    case Operation::kComplete:
      pool.complete(block);
      naive = {BlockState::kHeld, 1};
      break;
    case Operation::kAbandon:
      pool.abandon(block);
      naive = {};
      break;
    case Operation::kLock:
      pool.lock(block);
      naive = {BlockState::kHeld, naive.users + 1};
      break;
    case Operation::kUnlock: {
      const bool was_last = pool.unlock(block);
      BOOST_TEST_REQUIRE(was_last == (naive.users == 1));
      naive = {was_last ? BlockState::kCached : BlockState::kHeld, naive.users - 1};
      break;
    }
    case Operation::kDiscard:
      pool.discard(block);
      naive = {};
      break;
    case Operation::kEvict:
      pool.evict(block);
      naive = {};
      break;
    case Operation::kLease:
      pool.lease(block);
      naive = {BlockState::kLeased, 0};
      break;
    case Operation::kEndLease:
      pool.end_lease(block);
      naive = {BlockState::kComputing, 0};
      break;
  }
}

// Every sequence of `depth` legal operations on a pool of naive.size() blocks.
uint64_t explore(const std::vector<std::pair<Operation, uint32_t>>& path, uint32_t blocks,
                 uint32_t depth) {
  BlockPool pool(blocks);
  std::vector<NaiveBlock> naive(blocks);
  for (const auto& [operation, index] : path) {
    if (operation == Operation::kAllocate) {
      const BlockIndex block = pool.allocate(kOwner);
      BOOST_TEST_REQUIRE(to_string(naive[block.value].state) == "free");
      apply(operation, block, pool, naive[block.value]);
    } else {
      apply(operation, BlockIndex{index}, pool, naive[index]);
    }
  }
  pool.check_invariants();
  for (uint32_t i = 0; i < blocks; ++i) {
    BOOST_TEST_REQUIRE(to_string(pool.state(BlockIndex{i})) == to_string(naive[i].state));
    BOOST_TEST_REQUIRE(pool.users(BlockIndex{i}) == naive[i].users);
  }
  uint64_t paths = 1;
  if (path.size() == depth) return paths;
  auto longer = path;
  longer.emplace_back();
  for (int o = 0; o <= static_cast<int>(Operation::kEndLease); ++o) {
    const auto operation = static_cast<Operation>(o);
    for (uint32_t i = 0; i < blocks; ++i) {
      if (!is_legal(operation, naive[i])) continue;
      longer.back() = {operation, i};
      paths += explore(longer, blocks, depth);
      if (operation == Operation::kAllocate) break;  // the pool picks the block
    }
  }
  return paths;
}

BOOST_AUTO_TEST_CASE(every_short_history_agrees_with_a_naive_model) {
  for (uint32_t blocks = 1; blocks <= 4; ++blocks)
    BOOST_TEST(explore({}, blocks, 7) > 50U, "a pool of " << blocks);
}

}  // namespace
}  // namespace troupe
