#pragma once
// How much of the memory for KV goes to layers that see everything, and how much to those with a
// window.

#include <cstdint>

namespace troupe {

struct KvPoolNeeds {
  uint64_t block_bytes = 0;         // of a block, in all layers that see everything …
  uint64_t window_block_bytes = 0;  // … and in all that have a window
  uint32_t window = 0;              // in tokens, ≥ 1
  uint32_t context_tokens = 0;      // the longest sequence
  uint32_t step_tokens_max = 0;
  uint32_t window_blocks = 0;  // to have in any case; 0: in proportion
};

struct KvPoolSizes {
  uint32_t blocks = 0;
  uint32_t window_blocks = 0;
};

// Sequences are taken to have so many windows of tokens on average: both pools are used up together
// then. Longer ones run out of blocks first, shorter ones out of windowed blocks.
inline constexpr uint32_t kWindowsPerSequence = 4;

// The pools that fit `bytes`. Windowed blocks suffice at least for one sequence that computes a
// prompt in the largest steps, or else there are as many as others. blocks is 0 when nothing fits.
[[nodiscard]] KvPoolSizes kv_pool_sizes(uint64_t bytes, const KvPoolNeeds& needs);
// The windowed blocks for a pool of so many others.
[[nodiscard]] uint32_t window_blocks_for(uint32_t blocks, const KvPoolNeeds& needs);

}  // namespace troupe
