#include "loadgen/lag_meter.h"

#include <algorithm>

#include "loadgen/limits.h"

namespace troupe::loadgen {

LagMeter::LagMeter(kj::Timer& timer, const Clock& clock)
    : timer_(timer), clock_(clock), ringing_(ring().eagerlyEvaluate(nullptr)) {}

kj::Promise<void> LagMeter::ring() {
  const TimePoint asked = clock_.now();
  return timer_.afterDelay(kLagInterval.count() * kj::MILLISECONDS).then([this, asked] {
    const Duration late = clock_.now() - asked - Duration(kLagInterval);
    late_ms_.push_back(std::max(0.0, std::chrono::duration<double, std::milli>(late).count()));
    return ring();
  });
}

}  // namespace troupe::loadgen
