#include "apps/node/kv_pool_sizes.h"

#include <algorithm>

#include "base/ids.h"
#include "engine/kv/window.h"
#include "engine/schedule/limits.h"

namespace troupe {

uint32_t window_blocks_for(uint32_t blocks, const KvPoolNeeds& needs) {
  if (needs.window_blocks != 0) return needs.window_blocks;
  // Of a sequence that decodes, and of one whose prompt is being computed.
  const uint64_t kept = window_blocks_needed(needs.window, kExtendAheadTokens);
  const uint64_t most = window_blocks_needed(needs.window, needs.step_tokens_max);
  const uint64_t context = (uint64_t{needs.context_tokens} + kBlockTokens - 1) / kBlockTokens;
  const uint64_t others = uint64_t{kWindowsPerSequence} * needs.window;
  const uint64_t wanted = (blocks * kept * kBlockTokens + others - 1) / others;
  return static_cast<uint32_t>(
      std::min<uint64_t>(blocks, std::max(wanted, std::min(most, context))));
}

KvPoolSizes kv_pool_sizes(uint64_t bytes, const KvPoolNeeds& needs) {
  const auto fits = [&](uint64_t blocks) {
    const uint64_t windowed = window_blocks_for(static_cast<uint32_t>(blocks), needs);
    return blocks * needs.block_bytes + windowed * needs.window_block_bytes <= bytes;
  };
  // What both take grows with the blocks, so the largest pools that fit are found by halves.
  uint64_t most = std::min<uint64_t>(bytes / needs.block_bytes, UINT32_MAX / kBlockTokens);
  uint64_t least = 0;
  while (least < most) {
    const uint64_t middle = (least + most + 1) / 2;
    if (fits(middle))
      least = middle;
    else
      most = middle - 1;
  }
  const auto blocks = static_cast<uint32_t>(least);
  return {.blocks = blocks, .window_blocks = window_blocks_for(blocks, needs)};
}

}  // namespace troupe
