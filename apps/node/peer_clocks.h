#pragma once
// The clocks of other nodes, as the transport estimates them.

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "troupe/transport.h"

namespace troupe {

// Asks the transport now and then, not for each message. Single-threaded.
class PeerClocks final {
 public:
  // Both must outlive it.
  PeerClocks(const Transport& transport, const Clock& clock)
      : transport_(transport), clock_(clock) {}

  // The node's monotonic clock minus ours; nothing for a node that is not connected or whose
  // keepalives have not been answered yet.
  [[nodiscard]] std::optional<Duration> offset(std::string_view node);

 private:
  const Transport& transport_;
  const Clock& clock_;
  std::optional<TimePoint> asked_;
  std::map<std::string, Duration, std::less<>> offsets_;
};

}  // namespace troupe
