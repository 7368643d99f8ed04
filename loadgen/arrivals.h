#pragma once
// When requests of an open loop arrive, whatever has become of the earlier ones.

#include <memory>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/trace/request_trace.h"
#include "loadgen/random.h"

namespace troupe::loadgen {

class Arrivals {
 public:
  virtual ~Arrivals() = default;
  // Of the next arrival, since the run's beginning; never earlier than the one before. Nothing
  // when there are no more.
  [[nodiscard]] virtual std::optional<Duration> next() = 0;
};

// Gaps of a gamma distribution with mean 1 / rate and shape `burstiness`: 1 is a Poisson process,
// less comes in bursts, more is more even; the coefficient of variation is 1 / sqrt(burstiness).
[[nodiscard]] std::unique_ptr<Arrivals> gamma_arrivals(double rate_per_s, double burstiness,
                                                       uint64_t seed);
// Equal gaps, the first arrival at once.
[[nodiscard]] std::unique_ptr<Arrivals> constant_arrivals(double rate_per_s);
// Those of a trace, every gap multiplied by `time_scale`. `trace` must outlive the result.
[[nodiscard]] std::unique_ptr<Arrivals> trace_arrivals(const Trace& trace, double time_scale);

}  // namespace troupe::loadgen
