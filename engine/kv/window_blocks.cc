#include "engine/kv/window_blocks.h"

#include "base/assert.h"

namespace troupe {

WindowBlocks::WindowBlocks(uint32_t window, uint32_t blocks)
    : window_(window), pool_(blocks), left_behind_(blocks), unused_(blocks), cached_nodes_(blocks) {
  TROUPE_ASSERT(window > 0, window);
}

void WindowBlocks::promise(uint32_t blocks) {
  TROUPE_ASSERT(blocks <= promisable(), blocks, promisable());
  promised_ += blocks;
}

void WindowBlocks::take_back(uint32_t blocks) {
  TROUPE_ASSERT(blocks <= promised_, blocks, promised_);
  promised_ -= blocks;
}

BlockIndex WindowBlocks::allocate(SequenceId owner) {
  if (pool_.free_count() == 0) {
    LruEviction& list = left_behind_.size() > 0 ? left_behind_ : unused_;
    forget(cached_nodes_[list.front().value]);
    ++evictions_;
  }
  return pool_.allocate(owner);
}

void WindowBlocks::complete(BlockIndex block, RadixNode* node) {
  pool_.complete(block);
  if (node == nullptr) return;
  if (node->window != kNoBlock) forget(node);
  node->window = block;
}

void WindowBlocks::lock(RadixNode* node) {
  TROUPE_ASSERT(node->window != kNoBlock, node->block);
  if (pool_.state(node->window) == BlockState::kCached) list_of(*node).remove(node->window);
  pool_.lock(node->window);
  node->window_shared = true;
}

void WindowBlocks::unlock(RadixNode* node, bool left_behind) {
  TROUPE_ASSERT(node->window != kNoBlock, node->block);
  if (!pool_.unlock(node->window)) return;
  node->window_left_behind = left_behind && !node->window_shared;
  list_of(*node).insert(node->window);
  cached_nodes_[node->window.value] = node;
}

void WindowBlocks::give_back(BlockIndex block) {
  if (pool_.state(block) == BlockState::kComputing)
    pool_.abandon(block);
  else
    pool_.discard(block);
}

void WindowBlocks::forget(RadixNode* node) {
  if (node->window == kNoBlock) return;
  list_of(*node).remove(node->window);
  pool_.evict(node->window);
  node->window = kNoBlock;
}

void WindowBlocks::check_invariants() const {
  pool_.check_invariants();
  const uint32_t cached = pool_.count(BlockState::kCached);
  TROUPE_ASSERT(left_behind_.size() + unused_.size() == cached, left_behind_.size(), unused_.size(),
                cached);
  // Whoever has not got all that it was promised gets it.
  TROUPE_ASSERT(pool_.total() - pool_.free_count() - cached <= promised_, pool_.free_count(),
                cached, promised_);
  for (uint32_t i = 0; i < pool_.total(); ++i) {
    if (pool_.state(BlockIndex{i}) == BlockState::kCached)
      TROUPE_ASSERT(cached_nodes_[i]->window == BlockIndex{i}, i, cached_nodes_[i]->window);
  }
}

}  // namespace troupe
