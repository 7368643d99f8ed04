#pragma once
#include "base/clock.h"

namespace troupe {

// The machine's clocks. Thread-safe.
class SystemClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override;
  [[nodiscard]] int64_t unix_seconds() const override;
};

}  // namespace troupe
