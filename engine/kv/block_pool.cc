#include "engine/kv/block_pool.h"

#include <array>

#include "base/assert.h"

namespace troupe {

const char* to_string(BlockState state) {
  switch (state) {
    case BlockState::kFree:
      return "free";
    case BlockState::kComputing:
      return "computing";
    case BlockState::kHeld:
      return "held";
    case BlockState::kCached:
      return "cached";
    case BlockState::kLeased:
      return "leased";
  }
  return "corrupt";
}

BlockPool::BlockPool(uint32_t blocks) : slots_(blocks) {
  TROUPE_ASSERT(blocks > 0, blocks);
  free_.reserve(blocks);
  for (uint32_t i = blocks; i > 0; --i) free_.push_back(BlockIndex{i - 1});
  counts_[static_cast<size_t>(BlockState::kFree)] = blocks;
}

BlockIndex BlockPool::allocate(SequenceId owner) {
  TROUPE_ASSERT(!free_.empty(), owner);
  const BlockIndex block = free_.back();
  free_.pop_back();
  set_state(block, BlockState::kComputing);
  at(block).owner = owner;
  return block;
}

void BlockPool::complete(BlockIndex block) {
  set_state(block, BlockState::kHeld);
  at(block).users = 1;
}

void BlockPool::lease(BlockIndex block) {
  TROUPE_ASSERT(state(block) == BlockState::kComputing, block, to_string(state(block)));
  set_state(block, BlockState::kLeased);
}

void BlockPool::end_lease(BlockIndex block) {
  TROUPE_ASSERT(state(block) == BlockState::kLeased, block, to_string(state(block)));
  set_state(block, BlockState::kComputing);
}

void BlockPool::abandon(BlockIndex block) {
  TROUPE_ASSERT(state(block) == BlockState::kComputing, block, to_string(state(block)));
  set_state(block, BlockState::kFree);
  free_.push_back(block);
}

void BlockPool::lock(BlockIndex block) {
  Slot& slot = at(block);
  if (slot.state == BlockState::kCached) set_state(block, BlockState::kHeld);
  TROUPE_ASSERT(slot.state == BlockState::kHeld, block, to_string(slot.state));
  ++slot.users;
}

bool BlockPool::unlock(BlockIndex block) {
  Slot& slot = at(block);
  TROUPE_ASSERT(slot.state == BlockState::kHeld, block, to_string(slot.state));
  TROUPE_ASSERT(slot.users > 0, block);
  if (--slot.users > 0) return false;
  set_state(block, BlockState::kCached);
  return true;
}

void BlockPool::discard(BlockIndex block) {
  Slot& slot = at(block);
  TROUPE_ASSERT(slot.state == BlockState::kHeld, block, to_string(slot.state));
  TROUPE_ASSERT(slot.users == 1, block, slot.users);
  slot.users = 0;
  set_state(block, BlockState::kFree);
  free_.push_back(block);
}

void BlockPool::evict(BlockIndex block) {
  TROUPE_ASSERT(state(block) == BlockState::kCached, block, to_string(state(block)));
  set_state(block, BlockState::kFree);
  free_.push_back(block);
}

SequenceId BlockPool::owner(BlockIndex block) const {
  TROUPE_ASSERT(state(block) == BlockState::kComputing || state(block) == BlockState::kLeased,
                block, to_string(state(block)));
  return at(block).owner;
}

const BlockPool::Slot& BlockPool::at(BlockIndex block) const {
  TROUPE_ASSERT(block.value < slots_.size(), block, slots_.size());
  return slots_[block.value];
}

BlockPool::Slot& BlockPool::at(BlockIndex block) {
  TROUPE_ASSERT(block.value < slots_.size(), block, slots_.size());
  return slots_[block.value];
}

void BlockPool::set_state(BlockIndex block, BlockState to) {
  // Row: from; column: to; in the order of the enumerators.
  static constexpr bool kLegal[kStates][kStates] = {
      {false, true, false, false, false},  // free: allocate
      {true, false, true, false, true},    // computing: abandon, complete, lease
      {true, false, false, true, false},   // held: discard, last unlock
      {true, false, true, false, false},   // cached: evict, lock
      {false, true, false, false, false},  // leased: end_lease
  };
  Slot& slot = at(block);
  TROUPE_ASSERT(kLegal[static_cast<size_t>(slot.state)][static_cast<size_t>(to)], block,
                to_string(slot.state), to_string(to));
  TROUPE_ASSERT(slot.users == 0, block, slot.users);
  --counts_[static_cast<size_t>(slot.state)];
  ++counts_[static_cast<size_t>(to)];
  slot.state = to;
}

void BlockPool::check_invariants() const {
  std::array<uint32_t, kStates> counts{};
  for (uint32_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    ++counts[static_cast<size_t>(slot.state)];
    TROUPE_ASSERT((slot.users > 0) == (slot.state == BlockState::kHeld), i, slot.users,
                  to_string(slot.state));
  }
  for (size_t s = 0; s < kStates; ++s) TROUPE_ASSERT(counts[s] == counts_[s], s, counts[s]);
  TROUPE_ASSERT(free_.size() == free_count(), free_.size(), free_count());
  std::vector<bool> listed(slots_.size());
  for (const BlockIndex block : free_) {
    TROUPE_ASSERT(state(block) == BlockState::kFree, block, to_string(state(block)));
    TROUPE_ASSERT(!listed[block.value], block);
    listed[block.value] = true;
  }
}

}  // namespace troupe
