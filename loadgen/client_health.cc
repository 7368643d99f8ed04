#include "loadgen/client_health.h"

#include <algorithm>
#include <cstdio>

namespace troupe::loadgen {
namespace {

constexpr double kCpuShareMax = 0.85;
// Timers of the loop ring in whole milliseconds, and a busy machine wakes a thread a few later.
constexpr double kLateMs = 5.0;
constexpr double kLateShare = 0.1;

std::string with(const char* format, double a, double b) {
  char text[200];
  const int size = std::snprintf(text, sizeof text, format, a, b);
  return std::string(text, static_cast<size_t>(size));
}

}  // namespace

ClientHealth judge(ClientLoad load, const Measures& measures) {
  ClientHealth health;
  health.cpu_share = load.cpu_share;
  health.loop_lag_ms = summarize(std::move(load.loop_lag_ms));
  health.lateness_ms = summarize(std::move(load.lateness_ms));
  if (load.cpu_share > kCpuShareMax) {
    health.reasons.push_back(with("its thread was busy for %.0f %% of the run (limit %.0f %%)",
                                  100.0 * load.cpu_share, 100.0 * kCpuShareMax));
  }
  double finest = measures.ttft.p50;
  if (measures.tpot.count > 0) finest = std::min(finest, measures.tpot.p50);
  const double lag = health.loop_lag_ms.p99, late = health.lateness_ms.p99;
  if (lag > kLateMs && lag > kLateShare * finest) {
    health.reasons.push_back(with(
        "its event loop ran up to %.1f ms late (p99), against medians of %.1f ms", lag, finest));
  }
  if (late > kLateMs && late > kLateShare * measures.ttft.p50) {
    health.reasons.push_back(
        with("requests were sent up to %.1f ms late (p99), against a median TTFT of %.1f ms", late,
             measures.ttft.p50));
  }
  return health;
}

}  // namespace troupe::loadgen
