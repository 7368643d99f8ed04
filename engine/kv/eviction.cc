#include "engine/kv/eviction.h"

#include "base/assert.h"

namespace troupe {

LruEviction::LruEviction(uint32_t blocks) : links_(size_t{blocks} + 1) {
  links_[blocks] = {.previous = blocks, .next = blocks, .linked = true};
}

void LruEviction::insert(BlockIndex block) {
  const auto ends = static_cast<uint32_t>(links_.size() - 1);
  TROUPE_ASSERT(block.value < ends, block, ends);
  Link& link = links_[block.value];
  TROUPE_ASSERT(!link.linked, block);
  link = {.previous = links_[ends].previous, .next = ends, .linked = true};
  links_[link.previous].next = block.value;
  links_[ends].previous = block.value;
  ++size_;
}

void LruEviction::remove(BlockIndex block) {
  TROUPE_ASSERT(block.value + 1 < links_.size(), block, links_.size());
  Link& link = links_[block.value];
  TROUPE_ASSERT(link.linked, block);
  links_[link.previous].next = link.next;
  links_[link.next].previous = link.previous;
  link.linked = false;
  --size_;
}

BlockIndex LruEviction::front() const {
  TROUPE_ASSERT(size_ > 0, size_);
  return BlockIndex{links_.back().next};
}

}  // namespace troupe
