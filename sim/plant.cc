#include "sim/plant.h"

#include <atomic>

namespace troupe::sim {

std::string_view to_string(Plant plant) {
  switch (plant) {
    case Plant::kNone:
      return "none";
    case Plant::kLoseEmission:
      return "lose-emission";
    case Plant::kDoubleEnd:
      return "double-end";
    case Plant::kWrongToken:
      return "wrong-token";
    case Plant::kLoseBlock:
      return "lose-block";
    case Plant::kIgnoreFences:
      return "ignore-fences";
    case Plant::kLateLanding:
      return "late-landing";
    case Plant::kSkipEndLease:
      return "skip-end-lease";
    case Plant::kSkipRelease:
      return "skip-release";
    case Plant::kDropKvReplies:
      return "drop-kv-replies";
    case Plant::kDropStep:
      return "drop-step";
    case Plant::kLoseFinished:
      return "lose-finished";
    case Plant::kOverLimit:
      return "over-limit";
    case Plant::kMiscount:
      return "miscount";
    case Plant::kUnseeded:
      return "unseeded";
    case Plant::kForeignBlock:
      return "foreign-block";
    case Plant::kWrongUsage:
      return "wrong-usage";
    case Plant::kStrayMessage:
      return "stray-message";
    case Plant::kTornMessage:
      return "torn-message";
    case Plant::kForeignWindow:
      return "foreign-window";
  }
  return "?";
}

uint64_t Saboteur::unseeded() {
  static std::atomic<uint64_t> calls{0};
  return SeededRng(++calls).next();
}

}  // namespace troupe::sim
