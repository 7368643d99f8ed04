#pragma once
// Recorded requests of real services as a load.

#include <cstddef>
#include <cstdint>

#include "base/trace/request_trace.h"
#include "sim/workload.h"

namespace troupe::sim {

struct TraceWorkloadOptions {
  double speed = 1.0;       // arrivals come so many times as fast
  size_t requests_max = 0;  // only the first ones; 0: all
  uint32_t vocabulary = 32000;
  uint32_t fronts = 1;
};

class TraceWorkload final : public Workload {
 public:
  // `trace` must outlive the workload.
  TraceWorkload(const Trace& trace, const TraceWorkloadOptions& options);
  [[nodiscard]] size_t size() const override { return size_; }
  [[nodiscard]] Duration arrival(size_t index) const override;
  [[nodiscard]] SimRequest make(size_t index) const override;

 private:
  const Trace& trace_;
  const TraceWorkloadOptions options_;
  const size_t size_;
};

}  // namespace troupe::sim
