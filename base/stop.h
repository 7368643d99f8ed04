#pragma once
// The stops of a request on its way through the system: one set of names for the schema, the
// handlers, the log line and the metrics. docs/walkthrough.md tells what happens at each.

#include <cstddef>
#include <cstdint>

namespace troupe {

// In the order in which a request passes them; the numbers are those of schema/control.capnp.
enum class Stop : uint8_t {
  kAccepted,   // the gateway parsed and tokenised it
  kRouted,     // the worker that the router chose has it
  kReserved,   // it has KV blocks
  kPrefilled,  // the last chunk of its prompt is computed
  kMoved,      // its KV stands where it is decoded
  kJoined,     // its first token is sampled
  kEmitted,    // its first token reached the gateway
  kFinished,   // it ended
};
inline constexpr size_t kStopCount = 8;

[[nodiscard]] constexpr const char* to_string(Stop stop) {
  constexpr const char* kNames[kStopCount] = {"accepted", "routed", "reserved", "prefilled",
                                              "moved",    "joined", "emitted",  "finished"};
  return kNames[static_cast<size_t>(stop)];
}

}  // namespace troupe
