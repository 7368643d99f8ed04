#include "actors/decode/kv_landings.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace troupe {

KvLandings::KvLandings(Transport& transport, const WorkerKv& kv, Closed closed)
    : transport_(transport), kv_(kv), closed_(std::move(closed)) {}

KvLandings::~KvLandings() = default;

Result<BulkTicket> KvLandings::open(const LandingBlocks& to, uint64_t label_high,
                                    uint64_t label_low) {
  TROUPE_ASSERT(!to.blocks.empty(), label_high);
  TROUPE_ASSERT(
      kv_.windowed.layers == 0 || to.window_first + to.window_blocks.size() == to.blocks.size(),
      to.window_first, to.window_blocks.size(), to.blocks.size());
  std::vector<std::span<std::byte>> ranges;
  ranges.reserve(kv_.all.layers * to.blocks.size() + kv_.windowed.layers * to.window_blocks.size());
  for (uint32_t layer = 0; layer < kv_.all.layers; ++layer) {
    for (const BlockIndex block : to.blocks) ranges.push_back(kv_.all.at(layer, block));
  }
  for (uint32_t layer = 0; layer < kv_.windowed.layers; ++layer) {
    for (const BlockIndex block : to.window_blocks) ranges.push_back(kv_.windowed.at(layer, block));
  }
  const size_t places = ranges.size();
  // Held until the landing is known here: nobody fills it before its ticket has left, but a
  // transport may be wrong.
  const std::lock_guard lock(mutex_);
  auto ticket = transport_.expose(std::move(ranges), label_high, label_low, *this);
  if (!ticket.ok()) return ticket;
  Landing& landing = landings_[ticket.value().landing];
  landing.blocks = static_cast<uint32_t>(to.blocks.size());
  landing.window_first = to.window_first;
  landing.arrived.resize(places);
  landing.layers.resize(to.blocks.size());
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
  const uint64_t unit = kv_.all.block_bytes;
  while (bytes > 0) {
    const size_t place = offset / unit;
    TROUPE_ASSERT(place < landing.arrived.size(), offset, bytes);
    const uint64_t taken = std::min(bytes, unit - offset % unit);
    if (taken == unit && !landing.arrived[place]) {
      landing.arrived[place] = true;
      ++landing.layers[block_of(landing, place)];
    }
    offset += taken;
    bytes -= taken;
  }
}

uint32_t KvLandings::block_of(const Landing& landing, size_t place) const {
  const size_t seen_by_all = size_t{kv_.all.layers} * landing.blocks;
  if (place < seen_by_all) return static_cast<uint32_t>(place % landing.blocks);
  const uint32_t windowed = landing.blocks - landing.window_first;
  return landing.window_first + static_cast<uint32_t>((place - seen_by_all) % windowed);
}

bool KvLandings::is_whole(const Landing& landing, uint32_t block) const {
  const bool has_windowed = block >= landing.window_first;
  return landing.layers[block] == kv_.all.layers + (has_windowed ? kv_.windowed.layers : 0);
}

void KvLandings::on_retracted(uint64_t id) {
  uint32_t whole = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = landings_.find(id);
    TROUPE_ASSERT(found != landings_.end(), id);
    const Landing& landing = found->second;
    while (whole < landing.blocks && is_whole(landing, whole)) ++whole;
    landings_.erase(found);
  }
  closed_(id, whole);
}

}  // namespace troupe
