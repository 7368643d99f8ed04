#pragma once
// A worker's KV storage as transfers see it.

#include <cstdint>
#include <span>

#include "base/assert.h"
#include "base/ids.h"

namespace troupe {

// Laid out `[layer][block]`, each layer of a block one contiguous run of `block_bytes`. Outlived by
// `memory`, which may be a device's: only the transport and the device touch it.
struct KvMemory {
  std::span<std::byte> memory;
  uint32_t layers = 0;
  uint32_t blocks = 0;
  uint64_t layer_bytes = 0;  // from one layer to the next; ≥ blocks * block_bytes
  uint64_t block_bytes = 0;

  [[nodiscard]] std::span<std::byte> at(uint32_t layer, BlockIndex block) const {
    TROUPE_ASSERT(layer < layers && block.value < blocks, layer, block);
    return memory.subspan(layer * layer_bytes + block.value * block_bytes, block_bytes);
  }
};

}  // namespace troupe
