#pragma once
// Landings over KV blocks: which blocks of each have arrived whole.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "actors/decode/landing_port.h"
#include "actors/worker/kv_memory.h"

namespace troupe {

// Thread-safe: opened and closed by the worker, filled on the transport's thread.
class KvLandings final : public LandingPort, public LandingObserver {
 public:
  // The first `blocks` blocks of the landing stand whole, and nothing is written there any more.
  // Called on the transport's thread or inside close(); must not block.
  using Closed = std::function<void(uint64_t landing, uint32_t blocks)>;

  // `transport` must outlive this object, which must outlive its landings: destroy it when all have
  // been closed, or after the transport has ended. `kv` is registered there.
  KvLandings(Transport& transport, const WorkerKv& kv, Closed closed);
  ~KvLandings() override;

  [[nodiscard]] Result<BulkTicket> open(const LandingBlocks& blocks, uint64_t label_high,
                                        uint64_t label_low) override;
  void close(uint64_t landing) override;

  void on_landed(uint64_t landing, uint64_t offset, uint64_t bytes) override;
  void on_retracted(uint64_t landing) override;

 private:
  struct Landing {
    uint32_t blocks = 0;
    uint32_t window_first = 0;     // blocks before it come without their windowed layers
    std::vector<bool> arrived;     // of each (layer, block), in the landing's order
    std::vector<uint32_t> layers;  // arrived whole, of each block
  };

  void mark(Landing& landing, uint64_t offset, uint64_t bytes) const;
  // Of the arrived-whole place, the block; of a block, whether all its layers are there.
  [[nodiscard]] uint32_t block_of(const Landing& landing, size_t place) const;
  [[nodiscard]] bool is_whole(const Landing& landing, uint32_t block) const;

  Transport& transport_;
  const WorkerKv kv_;
  const Closed closed_;
  std::mutex mutex_;
  std::map<uint64_t, Landing> landings_;
};

}  // namespace troupe
