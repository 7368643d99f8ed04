#pragma once
// Bugs planted on purpose, one at a time, to prove that each oracle can fail. They sit in what the
// simulation wraps around the cores, never in the cores.

#include <cstdint>
#include <string_view>

#include "transport/sim/seeded_rng.h"

namespace troupe::sim {

enum class Plant : uint8_t {
  kNone,
  kLoseEmission,   // a message with tokens is dropped on its way, and nobody hears of it
  kDoubleEnd,      // a client hears the end of an answer twice
  kWrongToken,     // a device stores one token's KV wrongly
  kLoseBlock,      // a device does not store one token's KV
  kIgnoreFences,   // parts are written into landings that were retracted
  kLateLanding,    // a landing is closed long after it was asked for
  kSkipEndLease,   // the KV-cache manager is not told that a transfer has ended
  kSkipRelease,    // … or that a sequence has
  kDropKvReplies,  // the KV-cache manager's answer is lost
  kDropStep,       // a step of the device does not come back
  kLoseFinished,   // the router does not hear that a request has finished
  kOverLimit,      // the router takes more requests than it may
  kMiscount,       // a metric counts a token that nobody got
  kUnseeded,       // a delay depends on what ran before in the process
  kForeignBlock,   // a step's block table names a block of somebody else
  kWrongUsage,     // a client is told of one prompt token more than it sent
  kStrayMessage,   // a worker gets what is for a router
  kTornMessage,    // a message arrives without its end
  kForeignWindow,  // as kForeignBlock, of the blocks of layers with a window
};
inline constexpr uint8_t kPlants = 20;

[[nodiscard]] std::string_view to_string(Plant plant);

// Decides when the planted bug strikes.
class Saboteur {
 public:
  Saboteur(Plant plant, uint64_t seed) : plant_(plant), wait_(SeededRng(seed ^ 0x5eedU).below(8)) {}

  // At each opportunity for that bug; true a few times after a while, or from then on.
  [[nodiscard]] bool strikes(Plant plant) {
    if (plant != plant_ || plant_ == Plant::kNone) return false;
    const uint64_t chance = chances_++;
    return chance >= wait_ && (chance < wait_ + kStrikes || plant == Plant::kUnseeded);
  }
  [[nodiscard]] bool plants(Plant plant) const { return plant == plant_; }
  // For Plant::kUnseeded: never the same twice in a process.
  [[nodiscard]] static uint64_t unseeded();

 private:
  static constexpr uint64_t kStrikes = 3;
  const Plant plant_;
  const uint64_t wait_;
  uint64_t chances_ = 0;
};

}  // namespace troupe::sim
