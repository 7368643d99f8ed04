#include "transport/sim/event_queue.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace troupe {

TimePoint EventQueue::now() const {
  return now_.load(std::memory_order_acquire);
}

int64_t EventQueue::unix_seconds() const {
  return std::chrono::duration_cast<std::chrono::seconds>(now().time_since_epoch()).count();
}

void EventQueue::at(TimePoint time, Action action) {
  TROUPE_ASSERT(action != nullptr);
  const std::lock_guard lock(mutex_);
  heap_.push_back({std::max(time, now()), next_sequence_++, std::move(action)});
  std::push_heap(heap_.begin(), heap_.end(), later);
}

bool EventQueue::run_one() {
  Action action;
  {
    const std::lock_guard lock(mutex_);
    if (heap_.empty()) return false;
    std::pop_heap(heap_.begin(), heap_.end(), later);
    TROUPE_ASSERT(heap_.back().time >= now());
    now_ = heap_.back().time;
    action = std::move(heap_.back().action);
    heap_.pop_back();
    ++events_run_;
  }
  action();
  return true;
}

void EventQueue::run_until(TimePoint time) {
  while (!empty() && next_time() <= time) run_one();
  const std::lock_guard lock(mutex_);
  now_ = std::max(now(), time);
}

bool EventQueue::empty() const {
  const std::lock_guard lock(mutex_);
  return heap_.empty();
}

TimePoint EventQueue::next_time() const {
  const std::lock_guard lock(mutex_);
  TROUPE_ASSERT(!heap_.empty());
  return heap_.front().time;
}

}  // namespace troupe
