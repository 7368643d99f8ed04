#pragma once
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "troupe/transport.h"

namespace troupe {

// Blocks of a sequence that another node may write.
struct LandingBlocks {
  std::span<const BlockIndex> blocks;  // never empty
  // Where windowed layers have blocks of their own: those from the window_first-th on.
  uint32_t window_first = 0;
  std::span<const BlockIndex> window_blocks;
};

// How the decode worker lets another node write KV into blocks that it has reserved. Non-blocking.
class LandingPort {
 public:
  virtual ~LandingPort() = default;
  // Opens a landing over these blocks, laid out as KvDestination says.
  [[nodiscard]] virtual Result<BulkTicket> open(const LandingBlocks& blocks, uint64_t label_high,
                                                uint64_t label_low) = 0;
  // on_landing_closed() follows exactly once, as a message of its own: from then on nothing is
  // written to the blocks.
  virtual void close(uint64_t landing) = 0;
};

}  // namespace troupe
