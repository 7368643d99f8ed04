#pragma once
// Virtual time: a clock that stands still while an event runs, and jumps to the next one after it.
// Everything that a simulation does is an event of one queue, so one thread runs a whole cluster.

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "base/clock.h"

namespace troupe {

// Pushing is thread-safe; only one thread runs events.
class EventQueue final : public Clock {
 public:
  using Action = std::function<void()>;

  EventQueue() = default;
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  // Virtual; begins an hour after the epoch, so that differences do not become negative.
  [[nodiscard]] TimePoint now() const override;
  [[nodiscard]] int64_t unix_seconds() const override;

  // Events run in the order of their times; those of one time in the order in which they came. What
  // should have run before now, runs now.
  void at(TimePoint time, Action action);
  void after(Duration delay, Action action) { at(now() + delay, std::move(action)); }

  // Runs the next event. False: there is none.
  bool run_one();
  // Runs all events up to that time, which it is afterwards.
  void run_until(TimePoint time);

  [[nodiscard]] bool empty() const;
  // Of the next event. Precondition: there is one.
  [[nodiscard]] TimePoint next_time() const;
  [[nodiscard]] uint64_t events_run() const { return events_run_; }

 private:
  struct Event {
    TimePoint time;
    uint64_t sequence = 0;
    Action action;
  };
  // As a heap's order: the event that is next comes out on top.
  static bool later(const Event& a, const Event& b) {
    return a.time != b.time ? a.time > b.time : a.sequence > b.sequence;
  }

  mutable std::mutex mutex_;
  std::vector<Event> heap_;
  uint64_t next_sequence_ = 0;
  uint64_t events_run_ = 0;
  std::atomic<TimePoint> now_{TimePoint(std::chrono::hours(1))};  // written under the mutex
};

}  // namespace troupe
