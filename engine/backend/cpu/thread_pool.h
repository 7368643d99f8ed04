#pragma once
// Fork and join for the short parallel pieces of a forward pass (tens of microseconds each, some
// 200 per token): the same threads every time, no allocation, no queue.
//
// Between pieces a worker spins for kSpins pauses (0.1 to 0.3 milliseconds, by processor), so that
// the next piece starts within a microsecond, then sleeps until called: longer than any pause
// within a step and than the hand-over to the next step, since a sleep and a wake cost more than
// many pieces. Threads are not pinned: the system keeps a spinning thread where it is, and a pinned
// one would wait behind whatever else runs there.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace troupe {

class ThreadPool final {
 public:
  static constexpr uint32_t kThreadsMax = 256;

  // `threads` of them work, in [1, kThreadsMax]: the caller of run() and threads - 1 of the pool's.
  // With a clock (which outlives the pool) it measures busy_time().
  explicit ThreadPool(uint32_t threads, const Clock* clock = nullptr);
  // No run() is in progress. Joins the workers.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] uint32_t threads() const { return threads_; }

  // The time that all threads together have spent in tasks; between calls of run(). Zero without a
  // clock.
  [[nodiscard]] Duration busy_time() const;

  // The share of [0, count) of one of the threads: consecutive parts, as equal as can be, the same
  // ones every time.
  struct Part {
    uint32_t begin, end;
  };
  [[nodiscard]] Part part_of(uint32_t count, uint32_t thread) const {
    return {static_cast<uint32_t>(uint64_t{count} * thread / threads_),
            static_cast<uint32_t>(uint64_t{count} * (thread + 1) / threads_)};
  }

  // Calls task(i) once for every i in [0, threads), each on a thread of its own (0 on the
  // caller's), and returns when all have returned. One thread at a time; not from inside a task.
  // Tasks do not throw. There is no deadline: a task is a bounded computation.
  template <class Task>
  void run(const Task& task) {
    run_erased([](const void* t, uint32_t i) { (*static_cast<const Task*>(t))(i); }, &task);
  }

  // Calls task(begin, end) on consecutive parts of [0, count), at most one per thread, which begin
  // at multiples of `grain`. Which thread gets what depends on the arguments alone.
  template <class Task>
  void split(uint32_t count, uint32_t grain, const Task& task) {
    const uint32_t grains = (count + grain - 1) / grain;
    if (grains == 0) return;
    if (grains == 1 || threads_ == 1) {
      task(uint32_t{0}, count);
      return;
    }
    run([&](uint32_t i) {
      const auto [begin, end] = part_of(grains, i);
      if (begin < end) task(begin * grain, end * grain < count ? end * grain : count);
    });
  }

  // Calls task(index, thread) once for every index in [0, count), in parallel, on at most
  // `threads_max` threads, the first ones; which takes which is a race, so the result of an index
  // may not depend on it. For pieces of unequal length.
  template <class Task>
  void each(uint32_t count, const Task& task, uint32_t threads_max = kThreadsMax) {
    next_.store(0, std::memory_order_relaxed);
    if (count <= 1 || threads_ == 1 || threads_max <= 1) {
      for (uint32_t i = 0; i < count; ++i) task(i, uint32_t{0});
      return;
    }
    run([&](uint32_t thread) {
      while (thread < threads_max) {
        const uint32_t i = next_.fetch_add(1, std::memory_order_relaxed);
        if (i >= count) return;
        task(i, thread);
      }
    });
  }

 private:
  using Function = void (*)(const void* task, uint32_t index);
  static constexpr int kSpins = 4000;

  struct alignas(64) Busy {
    Duration time{};  // written by its thread, read between calls of run()
  };

  void run_erased(Function function, const void* task);
  void work(uint32_t index);
  // Runs this thread's share of the piece.
  void call(Function function, const void* task, uint32_t index);

  const uint32_t threads_;
  const Clock* const clock_;
  std::vector<Busy> busy_;       // by thread
  Function function_ = nullptr;  // written before, read after a change of generation_
  const void* task_ = nullptr;
  std::atomic<bool> stopping_{false};
  alignas(64) std::atomic<uint32_t> generation_{0};  // of the latest piece
  alignas(64) std::atomic<uint32_t> pending_{0};     // workers that have not finished it
  alignas(64) std::atomic<uint32_t> sleepers_{0};    // workers asleep or about to be
  alignas(64) std::atomic<uint32_t> next_{0};        // of each()
  std::atomic<bool> caller_sleeps_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  std::vector<std::thread> workers_;
};

}  // namespace troupe
