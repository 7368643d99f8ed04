#pragma once
// Which blocks of a sequence a layer with a sliding window still reads.

#include <cstdint>

#include "base/ids.h"

namespace troupe {

// A row at `position` sees the `window` tokens up to its own; the block of the first of them. Rows
// after it see none before that block, so what stands earlier is read no more.
[[nodiscard]] constexpr uint32_t first_seen_block(uint32_t position, uint32_t window) {
  return position >= window ? (position - window + 1) / kBlockTokens : 0;
}

// What is kept for a sequence of which `computed` tokens are: also what the row behind its last
// full block sees, so that whoever comes with the same tokens finds that prefix whole.
[[nodiscard]] constexpr uint32_t first_kept_block(uint32_t computed, uint32_t window) {
  return first_seen_block(computed / kBlockTokens * kBlockTokens, window);
}

// The most blocks that such a layer needs of a sequence at once when each of its steps computes at
// most `step_tokens` tokens, and the blocks of the next step are handed out before the one in
// flight has ended: those before the latest full block that are still seen, and two steps' worth.
[[nodiscard]] constexpr uint32_t window_blocks_needed(uint32_t window, uint32_t step_tokens) {
  const uint32_t seen = (window - 1 + kBlockTokens - 1) / kBlockTokens;
  const uint32_t step = (step_tokens + kBlockTokens - 1) / kBlockTokens;
  return seen + 1 + 2 * step;
}

}  // namespace troupe
