#pragma once
// The landings that a node has open, and who is writing into them: the part of the bulk lane's
// contract that does not depend on what carries the bytes.

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "troupe/transport.h"

namespace troupe {

using ByteRanges = std::vector<std::span<std::byte>>;

// Thread-safe; observers are called on the calling thread with no lock held.
class LandingTable final {
 public:
  // Landings are numbered from `first_landing` on: random, so that a restarted node does not repeat
  // a number of its former life.
  explicit LandingTable(uint64_t first_landing) : next_(first_landing) {}
  // Asserts that nothing is open.
  ~LandingTable();
  LandingTable(const LandingTable&) = delete;
  LandingTable& operator=(const LandingTable&) = delete;

  // The contract of Transport::expose(), except for the check that the ranges are registered.
  [[nodiscard]] Result<BulkTicket> open(ByteRanges ranges, uint64_t label_high, uint64_t label_low,
                                        LandingObserver& observer);
  // on_retracted() comes from inside when nobody is writing, otherwise from the last end_write().
  void retract(uint64_t landing);
  void retract_all();

  // Whether a part may be written: the errors of begin_write().
  [[nodiscard]] Status check(const BulkTicket& ticket, uint64_t offset, uint64_t bytes) const;
  // The memory behind bytes [offset, offset + bytes) of the landing, which is the writer's until
  // its end_write(). Ranges that touch in memory come as one. kNotFound, kInvalidArgument: as at
  // MoveDone.
  [[nodiscard]] Result<ByteRanges> begin_write(const BulkTicket& ticket, uint64_t offset,
                                               uint64_t bytes);
  // Ends one begin_write() that succeeded. `landed`: the bytes stand, verified.
  void end_write(uint64_t landing, uint64_t offset, uint64_t bytes, bool landed);

  [[nodiscard]] size_t open_count() const;

 private:
  struct Landing {
    BulkTicket ticket;
    ByteRanges ranges;
    std::vector<uint64_t> ends;  // of each range, in bytes from the landing's start
    LandingObserver* observer = nullptr;
    size_t writers = 0;
    bool retracted = false;  // takes no new writer; goes with the last one
  };

  // The open landing of a part that fits; needs the lock.
  [[nodiscard]] Result<const Landing*> find(const BulkTicket& ticket, uint64_t offset,
                                            uint64_t bytes) const;

  mutable std::mutex mutex_;
  std::map<uint64_t, Landing> landings_;
  uint64_t next_;
};

// Checksum of the bytes of `pieces` one after the other (XXH3, 64 bits).
[[nodiscard]] uint64_t checksum_of(std::span<const std::span<const std::byte>> pieces);
[[nodiscard]] uint64_t checksum_of(std::span<const std::span<std::byte>> pieces);

// Copies what `from` holds into `to`; both hold equally many bytes.
void copy_pieces(std::span<const std::span<const std::byte>> from,
                 std::span<const std::span<std::byte>> to);

[[nodiscard]] uint64_t bytes_of(std::span<const std::span<const std::byte>> pieces);

// kInvalidArgument: a part that no transport takes: empty, or of too many pieces.
[[nodiscard]] Status check_part(const BulkPart& part);

}  // namespace troupe
