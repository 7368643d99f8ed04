#pragma once
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "troupe/transport.h"

namespace troupe {

// How the decode worker lets another node write KV into blocks that it has reserved. Non-blocking.
class LandingPort {
 public:
  virtual ~LandingPort() = default;
  // Opens a landing over these blocks, laid out `[layer][block]` in the order given.
  [[nodiscard]] virtual Result<BulkTicket> open(std::span<const BlockIndex> blocks,
                                                uint64_t label_high, uint64_t label_low) = 0;
  // on_landing_closed() follows exactly once, as a message of its own: from then on nothing is
  // written to the blocks.
  virtual void close(uint64_t landing) = 0;
};

}  // namespace troupe
