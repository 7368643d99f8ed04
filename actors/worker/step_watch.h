#pragma once
// What a worker knows of its device's steps: whether one is in flight and for how long, whether
// that is too long, and how fast the device is.

#include <cstdint>

#include "base/clock.h"
#include "engine/step.h"

namespace troupe {

class StepWatch {
 public:
  // `clock` must outlive the watch.
  explicit StepWatch(const Clock& clock);

  // Precondition: no step is in flight.
  void on_submitted(const StepPlan& plan);
  void on_done(const StepResult& result);
  void on_failed(Status status);  // for good
  // Every kHeartbeatInterval. While this process did not run, its device did not either.
  void on_tick();

  [[nodiscard]] bool in_flight() const { return in_flight_; }
  [[nodiscard]] const Status& failed() const { return failed_; }
  // The device failed, or the step in flight takes far longer than predicted.
  [[nodiscard]] bool stalled() const;
  // Of the step in flight; 0 when idle.
  [[nodiscard]] Duration age() const;

  // Learned; 0 while unknown. Of prompt tokens, from steps with many of them; and of steps that
  // only decode.
  [[nodiscard]] double seconds_per_token() const { return seconds_per_token_; }
  [[nodiscard]] double seconds_per_step() const { return seconds_per_step_; }

 private:
  const Clock& clock_;
  bool in_flight_ = false;
  uint32_t tokens_ = 0, slices_ = 0;  // of the step in flight
  TimePoint submitted_{};
  TimePoint last_tick_;
  Status failed_;
  double seconds_per_token_ = 0.0;
  double seconds_per_step_ = 0.0;
};

}  // namespace troupe
