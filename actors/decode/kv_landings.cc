#include "actors/decode/kv_landings.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace troupe {

KvLandings::KvLandings(Transport& transport, const KvMemory& kv, Closed closed)
    : transport_(transport), kv_(kv), closed_(std::move(closed)) {}

KvLandings::~KvLandings() = default;

Result<BulkTicket> KvLandings::open(std::span<const BlockIndex> blocks, uint64_t label_high,
                                    uint64_t label_low) {
  TROUPE_ASSERT(!blocks.empty(), label_high);
  std::vector<std::span<std::byte>> ranges;
  ranges.reserve(size_t{kv_.layers} * blocks.size());
  for (uint32_t layer = 0; layer < kv_.layers; ++layer) {
    for (const BlockIndex block : blocks) ranges.push_back(kv_.at(layer, block));
  }
  // Held until the landing is known here: nobody fills it before its ticket has left, but a
  // transport may be wrong.
  const std::lock_guard lock(mutex_);
  auto ticket = transport_.expose(std::move(ranges), label_high, label_low, *this);
  if (!ticket.ok()) return ticket;
  Landing& landing = landings_[ticket.value().landing];
  landing.blocks = static_cast<uint32_t>(blocks.size());
  landing.arrived.resize(size_t{kv_.layers} * blocks.size());
  landing.layers.resize(blocks.size());
  return ticket;
}

void KvLandings::close(uint64_t landing) {
  transport_.retract(landing);
}

void KvLandings::on_landed(uint64_t id, uint64_t offset, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = landings_.find(id);
  TROUPE_ASSERT(found != landings_.end(), id);
  mark(found->second, offset, bytes);
}

// Senders move whole blocks of a layer; anything less does not count, and what arrives twice counts
// once.
void KvLandings::mark(Landing& landing, uint64_t offset, uint64_t bytes) const {
  const uint64_t unit = kv_.block_bytes;
  while (bytes > 0) {
    const size_t place = offset / unit;
    TROUPE_ASSERT(place < landing.arrived.size(), offset, bytes);
    const uint64_t taken = std::min(bytes, unit - offset % unit);
    if (taken == unit && !landing.arrived[place]) {
      landing.arrived[place] = true;
      ++landing.layers[place % landing.blocks];
    }
    offset += taken;
    bytes -= taken;
  }
}

void KvLandings::on_retracted(uint64_t id) {
  uint32_t whole = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = landings_.find(id);
    TROUPE_ASSERT(found != landings_.end(), id);
    const Landing& landing = found->second;
    while (whole < landing.blocks && landing.layers[whole] == kv_.layers) ++whole;
    landings_.erase(found);
  }
  closed_(id, whole);
}

}  // namespace troupe
