#include "engine/backend/cpu/thread_pool.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <set>
#include <thread>
#include <vector>

namespace troupe::test {
namespace {

BOOST_AUTO_TEST_CASE(every_thread_runs_every_piece_once_over_many_pieces) {
  for (uint32_t threads : {1U, 2U, 3U, 8U}) {
    ThreadPool pool(threads);
    std::vector<uint64_t> runs(threads * 16);  // one cache line and more apart
    constexpr uint64_t kPieces = 2000;
    for (uint64_t piece = 0; piece < kPieces; ++piece)
      pool.run([&](uint32_t i) { ++runs[i * 16]; });
    for (uint32_t i = 0; i < threads; ++i) BOOST_TEST(runs[i * 16] == kPieces);
  }
}

BOOST_AUTO_TEST_CASE(what_a_piece_wrote_is_seen_by_the_caller_and_by_the_next_piece) {
  ThreadPool pool(4);
  std::vector<uint32_t> values(4), sums(4);
  for (uint32_t round = 1; round <= 500; ++round) {
    pool.run([&](uint32_t i) { values[i] = round * (i + 1); });
    pool.run([&](uint32_t i) {
      sums[i] = 0;
      for (uint32_t value : values) sums[i] += value;
    });
    for (uint32_t sum : sums) BOOST_REQUIRE_EQUAL(sum, round * 10);
  }
}

BOOST_AUTO_TEST_CASE(split_covers_the_range_once_and_begins_parts_at_the_grain) {
  for (uint32_t threads : {1U, 2U, 3U, 5U}) {
    ThreadPool pool(threads);
    for (uint32_t count : {0U, 1U, 15U, 16U, 17U, 100U, 1000U}) {
      for (uint32_t grain : {1U, 16U}) {
        std::vector<int> seen(count);
        std::atomic<int> wrong = 0;
        pool.split(count, grain, [&](uint32_t begin, uint32_t end) {
          // Boost's checks are for one thread: what is wrong is counted.
          if (begin % grain != 0 || begin >= end || end > count) ++wrong;
          for (uint32_t i = begin; i < end; ++i) ++seen[i];
        });
        BOOST_REQUIRE_EQUAL(wrong.load(), 0);
        for (int times : seen) BOOST_REQUIRE_EQUAL(times, 1);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(each_takes_every_index_once_and_names_a_thread_of_the_pool) {
  for (uint32_t threads : {1U, 2U, 4U}) {
    ThreadPool pool(threads);
    for (uint32_t count : {0U, 1U, 3U, 257U}) {
      std::vector<uint32_t> takers(count, threads);
      pool.each(count, [&](uint32_t i, uint32_t thread) { takers[i] = thread; });
      for (uint32_t taker : takers) BOOST_REQUIRE_LT(taker, threads);
    }
  }
}

BOOST_AUTO_TEST_CASE(each_keeps_to_as_many_threads_as_it_may) {
  ThreadPool pool(4);
  for (uint32_t most : {1U, 2U, 3U}) {
    std::vector<uint32_t> takers(101, 4);
    pool.each(
        101, [&](uint32_t i, uint32_t thread) { takers[i] = thread; }, most);
    for (uint32_t taker : takers) BOOST_REQUIRE_LT(taker, most);
  }
}

BOOST_AUTO_TEST_CASE(workers_that_fell_asleep_are_woken) {
  ThreadPool pool(3);
  for (int round = 0; round < 20; ++round) {
    // Long enough, in work and not in time, for spinning workers to give up.
    for (volatile uint32_t i = 0; i < 2'000'000;) i = i + 1;
    std::vector<int> runs(3);
    pool.run([&](uint32_t i) { ++runs[i]; });
    BOOST_TEST((runs == std::vector<int>{1, 1, 1}));
  }
}

BOOST_AUTO_TEST_CASE(a_pool_may_end_at_any_moment_after_a_piece) {
  for (int round = 0; round < 200; ++round) {
    ThreadPool pool(3);
    if (round % 2 == 0) pool.run([](uint32_t) {});
  }
}

}  // namespace
}  // namespace troupe::test
