#pragma once
// Time as a dependency: everything outside base/os and apps gets a Clock, so that tests and the
// simulator decide what time it is.

#include <chrono>

namespace troupe {

using Duration = std::chrono::nanoseconds;
// Monotonic; its epoch means nothing outside the process.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

class Clock {
 public:
  virtual ~Clock() = default;
  // Thread-safe.
  [[nodiscard]] virtual TimePoint now() const = 0;
  // Seconds since 1970-01-01 UTC, for what people read ("created"); never for measuring.
  [[nodiscard]] virtual int64_t unix_seconds() const = 0;
};

// A clock that stands still until told otherwise. Not thread-safe.
class ManualClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override { return now_; }
  [[nodiscard]] int64_t unix_seconds() const override {
    return std::chrono::duration_cast<std::chrono::seconds>(now_.time_since_epoch()).count();
  }
  void advance(Duration by) { now_ += by; }

 private:
  TimePoint now_{};
};

}  // namespace troupe
