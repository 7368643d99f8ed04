#pragma once
// The second kind of block: KV of those layers of a model that have a sliding window. A block of
// the radix tree consists of one block of either kind, of which the windowed one is given up as
// soon as somebody else needs it: a node that has lost it still serves as a part of a longer
// prefix, whose last `window` tokens have theirs.
//
// Nobody asks for these blocks one by one. A sequence is promised the most that it will hold at
// once, and the promises together never exceed the pool. So a block can always be handed out, at
// the cost of unused ones only.

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "engine/kv/block_pool.h"
#include "engine/kv/eviction.h"
#include "engine/kv/radix_tree.h"

namespace troupe {

// Single-threaded. All operations O(1).
class WindowBlocks {
 public:
  // Of a window of so many tokens, ≥ 1.
  WindowBlocks(uint32_t window, uint32_t blocks);

  [[nodiscard]] uint32_t window() const { return window_; }
  [[nodiscard]] uint32_t promised() const { return promised_; }
  [[nodiscard]] uint32_t promisable() const { return pool_.total() - promised_; }
  void promise(uint32_t blocks);
  void take_back(uint32_t blocks);

  // For a sequence that holds fewer than it was promised.
  BlockIndex allocate(SequenceId owner);
  // `block` is full. With a node it becomes its content, in place of an older, unused one.
  void complete(BlockIndex block, RadixNode* node);
  // One user more of a node's block. From now on it counts as one that is shared.
  void lock(RadixNode* node);
  // One user less. Unused blocks are given up in this order: first those that their sequence left
  // behind its window and that nobody else ever used, then the others; in each group the least
  // recently used.
  void unlock(RadixNode* node, bool left_behind);
  // The sequence's own block, which no node has, goes back.
  void give_back(BlockIndex block);
  // The node, unused, goes or gets another content.
  void forget(RadixNode* node);

  [[nodiscard]] BlockPool& pool() { return pool_; }
  [[nodiscard]] const BlockPool& pool() const { return pool_; }
  [[nodiscard]] uint64_t evictions() const { return evictions_; }
  void check_invariants() const;

 private:
  [[nodiscard]] LruEviction& list_of(const RadixNode& node) {
    return node.window_left_behind ? left_behind_ : unused_;
  }

  const uint32_t window_;
  BlockPool pool_;
  LruEviction left_behind_, unused_;
  std::vector<RadixNode*> cached_nodes_;  // by block; valid while the block is cached
  uint32_t promised_ = 0;
  uint64_t evictions_ = 0;
};

}  // namespace troupe
