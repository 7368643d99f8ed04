#pragma once
// The life of every KV block of a worker. Knows who owns a block, not what stands in it.
//
//            allocate             complete                 unlock (last)
//   free ───────────────▶ computing ───────────▶ held ◀───────────────────▶ cached
//    ▲                      │ ▲ │ abandon         │ discard        lock        │ evict
//    └──────────────────────│─│─┴─────────────────┴────────────────────────────┘
//                     lease ▼ │ end_lease
//                          leased
//
// Every change of state goes through set_state(), which asserts that it is one of these arrows.

#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace troupe {

enum class BlockState : uint8_t {
  kFree,
  kComputing,  // being filled by exactly one sequence, its owner
  kHeld,       // full; users ≥ 1 sequences read it
  kCached,     // full, in the radix tree, no users: may be evicted
  kLeased,     // computing, and a transfer may write it: nobody else touches it, nor frees it
};

[[nodiscard]] const char* to_string(BlockState state);

// Single-threaded. All operations O(1) except check_invariants().
class BlockPool {
 public:
  explicit BlockPool(uint32_t blocks);

  // Precondition: free_count() > 0. Blocks are handed out in an order that only depends on the
  // history of calls.
  BlockIndex allocate(SequenceId owner);
  // computing -> held, with one user.
  void complete(BlockIndex block);
  // computing -> leased -> computing, of the same owner.
  void lease(BlockIndex block);
  void end_lease(BlockIndex block);
  // computing -> free.
  void abandon(BlockIndex block);
  // One user more: held -> held, cached -> held.
  void lock(BlockIndex block);
  // One user less. Returns true when it was the last one: then the block is cached.
  bool unlock(BlockIndex block);
  // held -> free; precondition: exactly one user (a copy that the tree does not have).
  void discard(BlockIndex block);
  // cached -> free.
  void evict(BlockIndex block);

  [[nodiscard]] BlockState state(BlockIndex block) const { return at(block).state; }
  // Of a computing or leased block.
  [[nodiscard]] SequenceId owner(BlockIndex block) const;
  [[nodiscard]] uint32_t users(BlockIndex block) const { return at(block).users; }

  [[nodiscard]] uint32_t total() const { return static_cast<uint32_t>(slots_.size()); }
  [[nodiscard]] uint32_t free_count() const { return count(BlockState::kFree); }
  [[nodiscard]] uint32_t count(BlockState state) const {
    return counts_[static_cast<size_t>(state)];
  }

  void check_invariants() const;

 private:
  struct Slot {
    BlockState state = BlockState::kFree;
    uint32_t users = 0;  // sequences that read it; 0 unless held
    SequenceId owner;    // while computing
  };
  static constexpr size_t kStates = 5;

  [[nodiscard]] const Slot& at(BlockIndex block) const;
  Slot& at(BlockIndex block);
  void set_state(BlockIndex block, BlockState to);

  std::vector<Slot> slots_;
  std::vector<BlockIndex> free_;  // a stack: what was used last is warm
  uint32_t counts_[kStates] = {};
};

}  // namespace troupe
