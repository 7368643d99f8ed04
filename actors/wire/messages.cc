#include "actors/wire/messages.h"

namespace troupe::wire {

const char* to_string(Stop stop) {
  switch (stop) {
    case Stop::kAccepted: return "accepted";
    case Stop::kRouted: return "routed";
    case Stop::kReserved: return "reserved";
    case Stop::kPrefilled: return "prefilled";
    case Stop::kMoved: return "moved";
    case Stop::kJoined: return "joined";
    case Stop::kEmitted: return "emitted";
    case Stop::kFinished: return "finished";
  }
  return "unknown";
}

}  // namespace troupe::wire
