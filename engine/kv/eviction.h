#pragma once
// In which order cached blocks are given up.

#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace troupe {

// Holds the evictable blocks of one radix tree in order, at all times: no scan at eviction.
// The tree inserts a block only after every descendant of it that is evictable, and only while no
// descendant is in use. So in order of insertion a leaf always comes first; a policy with another
// order must keep a block behind its descendants.
class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;
  virtual void insert(BlockIndex block) = 0;  // became evictable
  virtual void remove(BlockIndex block) = 0;  // is used again, or was evicted
  // The next one to give up. Precondition: size() > 0.
  [[nodiscard]] virtual BlockIndex front() const = 0;
  [[nodiscard]] virtual uint32_t size() const = 0;
};

// Least recently used first; exact, O(1): a doubly linked list threaded through an array.
class LruEviction final : public EvictionPolicy {
 public:
  explicit LruEviction(uint32_t blocks);
  void insert(BlockIndex block) override;
  void remove(BlockIndex block) override;
  [[nodiscard]] BlockIndex front() const override;
  [[nodiscard]] uint32_t size() const override { return size_; }

 private:
  struct Link {
    uint32_t previous, next;
    bool linked = false;
  };
  std::vector<Link> links_;  // one per block; the last one is the list's ends
  uint32_t size_ = 0;
};

}  // namespace troupe
