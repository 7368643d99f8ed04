#pragma once
#include <kj/async.h>
#include <kj/timer.h>

#include <vector>

#include "base/clock.h"

namespace troupe::loadgen {

// Rings a timer every kLagInterval and notes how late it rang. Lives on its loop's thread, from
// whose processor time it takes a share below a thousandth.
class LagMeter final {
 public:
  // Both outlive this object. Runs from now on.
  LagMeter(kj::Timer& timer, const Clock& clock);

  // In milliseconds, so far.
  [[nodiscard]] const std::vector<double>& late_ms() const { return late_ms_; }

 private:
  kj::Promise<void> ring();

  kj::Timer& timer_;
  const Clock& clock_;
  std::vector<double> late_ms_;
  kj::Promise<void> ringing_;
};

}  // namespace troupe::loadgen
