#pragma once
// Whether the figures are the server's or the load generator's own.

#include <string>
#include <vector>

#include "loadgen/measures.h"

namespace troupe::loadgen {

struct ClientLoad {
  // How much later than asked a timer of the event loop rang, in milliseconds, all through the run.
  std::vector<double> loop_lag_ms;
  double cpu_share = 0.0;  // of one core, that the loop's thread used
  // How much later than planned requests of an open loop were sent, for no reason of the load's
  // own (--max-concurrency), in milliseconds. Empty for a closed loop.
  std::vector<double> lateness_ms;
};

struct ClientHealth {
  Summary loop_lag_ms, lateness_ms;
  double cpu_share = 0.0;
  // What speaks for the client as the bottleneck, in words with figures; empty: nothing does.
  std::vector<std::string> reasons;
  [[nodiscard]] bool is_bottleneck() const { return !reasons.empty(); }
};

// The client is the bottleneck where its thread was busy for more than 85 % of the run, or where
// its loop or its arrivals were late in the 99th percentile by more than 5 ms and by more than
// 10 % of what was measured: the median of TTFT or of TPOT, whichever is less, for the loop; the
// median of TTFT for arrivals.
[[nodiscard]] ClientHealth judge(ClientLoad load, const Measures& measures);

}  // namespace troupe::loadgen
