#include "transport/local/landing_table.h"

#include <xxhash.h>
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // makes XXH3 use the widest vectors that the processor has
#endif

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "base/assert.h"
#include "base/limits.h"

namespace troupe {

LandingTable::~LandingTable() {
  TROUPE_ASSERT(landings_.empty(), landings_.size());
}

Result<BulkTicket> LandingTable::open(ByteRanges ranges, uint64_t label_high, uint64_t label_low,
                                      LandingObserver& observer) {
  if (ranges.empty()) return invalid_argument("a landing needs at least one range of memory");
  if (ranges.size() > limits::kLandingRangesMax) {
    return invalid_argument("a landing of " + std::to_string(ranges.size()) +
                            " ranges exceeds the limit of " +
                            std::to_string(limits::kLandingRangesMax) + "; expose fewer at once");
  }
  Landing landing;
  landing.ends.reserve(ranges.size());
  uint64_t end = 0;
  for (const std::span<std::byte>& range : ranges) {
    if (range.empty()) return invalid_argument("a range of a landing is empty; leave it out");
    end += range.size();
    landing.ends.push_back(end);
  }
  landing.ranges = std::move(ranges);
  landing.observer = &observer;

  const std::lock_guard lock(mutex_);
  if (landings_.size() >= limits::kLandingsMax) {
    return Status{StatusCode::kResourceExhausted,
                  "all " + std::to_string(limits::kLandingsMax) +
                      " landings of this node are open; retract one first"};
  }
  landing.ticket = {next_++, label_high, label_low};
  const BulkTicket ticket = landing.ticket;
  const bool inserted = landings_.emplace(ticket.landing, std::move(landing)).second;
  TROUPE_ASSERT(inserted, ticket.landing);
  return ticket;
}

void LandingTable::retract(uint64_t landing) {
  LandingObserver* observer = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = landings_.find(landing);
    if (found == landings_.end() || found->second.retracted) return;
    found->second.retracted = true;
    if (found->second.writers > 0) return;
    observer = found->second.observer;
    landings_.erase(found);
  }
  observer->on_retracted(landing);
}

void LandingTable::retract_all() {
  std::vector<uint64_t> open;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, landing] : landings_) open.push_back(number);
  }
  for (const uint64_t number : open) retract(number);
}

Result<const LandingTable::Landing*> LandingTable::find(const BulkTicket& ticket, uint64_t offset,
                                                        uint64_t bytes) const {
  const auto found = landings_.find(ticket.landing);
  if (found == landings_.end() || found->second.retracted || found->second.ticket != ticket) {
    return Status{StatusCode::kNotFound,
                  "no landing is open for this ticket; it was retracted, or belongs to another"};
  }
  const uint64_t size = found->second.ends.back();
  if (bytes == 0 || offset > size || bytes > size - offset) {
    return invalid_argument("a part of " + std::to_string(bytes) + " bytes at " +
                            std::to_string(offset) + " does not fit the landing of " +
                            std::to_string(size) + " bytes");
  }
  return &found->second;
}

Status LandingTable::check(const BulkTicket& ticket, uint64_t offset, uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  return find(ticket, offset, bytes).status();
}

Result<ByteRanges> LandingTable::begin_write(const BulkTicket& ticket, uint64_t offset,
                                             uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  TROUPE_ASSIGN_OR_RETURN(const Landing* const found, find(ticket, offset, bytes));
  const Landing& landing = *found;
  ByteRanges out;
  auto index = static_cast<size_t>(
      std::upper_bound(landing.ends.begin(), landing.ends.end(), offset) - landing.ends.begin());
  while (bytes > 0) {
    TROUPE_ASSERT(index < landing.ranges.size(), index, offset, bytes);
    const std::span<std::byte> range = landing.ranges[index];
    const uint64_t start = landing.ends[index] - range.size();
    const std::span<std::byte> here =
        range.subspan(offset - start, std::min<uint64_t>(bytes, landing.ends[index] - offset));
    if (!out.empty() && out.back().data() + out.back().size() == here.data()) {
      out.back() = {out.back().data(), out.back().size() + here.size()};
    } else {
      out.push_back(here);
    }
    offset += here.size();
    bytes -= here.size();
    ++index;
  }
  ++landings_.at(ticket.landing).writers;
  return out;
}

void LandingTable::end_write(uint64_t number, uint64_t offset, uint64_t bytes, bool landed) {
  LandingObserver* observer = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = landings_.find(number);
    TROUPE_ASSERT(found != landings_.end() && found->second.writers > 0, number);
    observer = found->second.observer;
  }
  // The writer still counts, so the landing and its observer stay while this runs.
  if (landed) observer->on_landed(number, offset, bytes);
  {
    const std::lock_guard lock(mutex_);
    const auto found = landings_.find(number);
    TROUPE_ASSERT(found != landings_.end(), number);
    if (--found->second.writers > 0 || !found->second.retracted) return;
    landings_.erase(found);
  }
  observer->on_retracted(number);
}

size_t LandingTable::open_count() const {
  const std::lock_guard lock(mutex_);
  return landings_.size();
}

namespace {

template <class Piece>
uint64_t checksum(std::span<const Piece> pieces) {
  if (pieces.size() == 1) return XXH3_64bits(pieces[0].data(), pieces[0].size());
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       &XXH3_freeState);
  TROUPE_ASSERT(state != nullptr);
  XXH3_64bits_reset(state.get());
  for (const Piece& piece : pieces) XXH3_64bits_update(state.get(), piece.data(), piece.size());
  return XXH3_64bits_digest(state.get());
}

}  // namespace

uint64_t checksum_of(std::span<const std::span<const std::byte>> pieces) {
  return checksum(pieces);
}

uint64_t checksum_of(std::span<const std::span<std::byte>> pieces) {
  return checksum(pieces);
}

void copy_pieces(std::span<const std::span<const std::byte>> from,
                 std::span<const std::span<std::byte>> to) {
  size_t target = 0, filled = 0;
  for (std::span<const std::byte> piece : from) {
    while (!piece.empty()) {
      TROUPE_ASSERT(target < to.size(), target);
      const size_t count = std::min(piece.size(), to[target].size() - filled);
      std::memcpy(to[target].data() + filled, piece.data(), count);
      piece = piece.subspan(count);
      filled += count;
      if (filled == to[target].size()) ++target, filled = 0;
    }
  }
  TROUPE_ASSERT(target == to.size() && filled == 0, target, filled);
}

uint64_t bytes_of(std::span<const std::span<const std::byte>> pieces) {
  uint64_t bytes = 0;
  for (const std::span<const std::byte>& piece : pieces) bytes += piece.size();
  return bytes;
}

Status check_part(const BulkPart& part) {
  if (part.pieces.size() > limits::kLandingRangesMax) {
    return invalid_argument("a part of " + std::to_string(part.pieces.size()) +
                            " pieces exceeds the limit of " +
                            std::to_string(limits::kLandingRangesMax) + "; move fewer at once");
  }
  if (bytes_of(part.pieces) == 0) return invalid_argument("a part without bytes; leave it out");
  return ok_status();
}

}  // namespace troupe
