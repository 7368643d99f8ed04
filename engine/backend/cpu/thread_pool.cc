#include "engine/backend/cpu/thread_pool.h"

#include <emmintrin.h>

#include "base/assert.h"

namespace troupe {

// Both sides sleep by the same protocol: announce it (sequentially consistent), look again, wait.
// The other side changes the state, then looks for announcements. One of the two sees the other.

ThreadPool::ThreadPool(uint32_t threads, const Clock* clock)
    : threads_(threads), clock_(clock), busy_(threads) {
  TROUPE_ASSERT(threads >= 1 && threads <= kThreadsMax, threads);
  workers_.reserve(threads - 1);
  for (uint32_t i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
}

ThreadPool::~ThreadPool() {
  TROUPE_ASSERT(pending_.load() == 0, pending_.load());
  {
    const std::lock_guard lock(mutex_);
    stopping_.store(true);
    generation_.fetch_add(1);
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

Duration ThreadPool::busy_time() const {
  Duration sum{};
  for (const Busy& busy : busy_) sum += busy.time;
  return sum;
}

void ThreadPool::call(Function function, const void* task, uint32_t index) {
  if (clock_ == nullptr) {
    function(task, index);
    return;
  }
  const TimePoint start = clock_->now();
  function(task, index);
  busy_[index].time += clock_->now() - start;
}

void ThreadPool::run_erased(Function function, const void* task) {
  if (threads_ == 1) {
    call(function, task, 0);
    return;
  }
  TROUPE_ASSERT(pending_.load(std::memory_order_relaxed) == 0, "run() within run()");
  function_ = function;
  task_ = task;
  pending_.store(threads_ - 1, std::memory_order_relaxed);
  generation_.fetch_add(1);
  if (sleepers_.load() > 0) {
    const std::lock_guard lock(mutex_);
    wake_.notify_all();
  }
  call(function, task, 0);
  for (int spin = 0; spin < kSpins; ++spin) {
    if (pending_.load(std::memory_order_acquire) == 0) return;
    _mm_pause();
  }
  std::unique_lock lock(mutex_);
  caller_sleeps_.store(true);
  done_.wait(lock, [this] { return pending_.load() == 0; });
  caller_sleeps_.store(false);
}

void ThreadPool::work(uint32_t index) {
  uint32_t seen = 0;
  for (;;) {
    for (int spin = 0; spin < kSpins; ++spin) {
      if (generation_.load(std::memory_order_acquire) != seen) break;
      _mm_pause();
    }
    if (generation_.load(std::memory_order_acquire) == seen) {
      std::unique_lock lock(mutex_);
      sleepers_.fetch_add(1);
      wake_.wait(lock, [&] { return generation_.load() != seen; });
      sleepers_.fetch_sub(1);
    }
    // One step at most: the next piece begins only when all have finished this one.
    ++seen;
    if (stopping_.load(std::memory_order_acquire)) return;
    call(function_, task_, index);
    if (pending_.fetch_sub(1) == 1 && caller_sleeps_.load()) {
      const std::lock_guard lock(mutex_);
      done_.notify_one();
    }
  }
}

}  // namespace troupe
