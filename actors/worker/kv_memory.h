#pragma once
// A worker's KV storage as transfers see it.

#include <cstdint>
#include <span>
#include <vector>

#include "base/assert.h"
#include "base/ids.h"

namespace troupe {

// One pool of blocks, each layer of a block one contiguous run of `block_bytes`. Outlived by
// `memory`, which may be a device's: only the transport and the device touch it.
struct KvMemory {
  std::span<std::byte> memory;
  uint32_t layers = 0;
  uint32_t blocks = 0;
  uint64_t block_stride = 0;  // from one block to the next
  uint64_t layer_stride = 0;  // from one layer of a block to its next
  uint64_t block_bytes = 0;

  [[nodiscard]] std::span<std::byte> at(uint32_t layer, BlockIndex block) const {
    TROUPE_ASSERT(layer < layers && block.value < blocks, layer, block);
    return memory.subspan(block.value * block_stride + layer * layer_stride, block_bytes);
  }
};

// All of it: one pool, or a second one for those layers that have a window.
struct WorkerKv {
  KvMemory all;
  KvMemory windowed;              // of the same block_bytes; layers is 0 where there is none
  uint32_t window = 0;            // tokens that a row sees there
  std::vector<bool> is_windowed;  // by layer of the model; empty: none is

  [[nodiscard]] uint32_t layers() const { return all.layers + windowed.layers; }
  [[nodiscard]] bool in_windowed(uint32_t layer) const {
    return !is_windowed.empty() && is_windowed[layer];
  }
  // The layer's place in its pool.
  [[nodiscard]] uint32_t place(uint32_t layer) const {
    if (is_windowed.empty()) return layer;
    uint32_t alike = 0;
    for (uint32_t l = 0; l < layer; ++l) alike += in_windowed(l) == in_windowed(layer) ? 1 : 0;
    return alike;
  }
};

}  // namespace troupe
