#include "runtime/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace litz {
namespace {

struct Chunks {
  std::mutex mutex;
  std::set<std::pair<int64_t, int64_t>> ranges;

  static void record(int64_t begin, int64_t end, void* state) {
    auto& chunks = *static_cast<Chunks*>(state);
    std::lock_guard lock(chunks.mutex);
    chunks.ranges.emplace(begin, end);
  }
};

std::set<std::pair<int64_t, int64_t>> chunks_of(ThreadPool& pool, int64_t begin, int64_t end,
                                                int64_t grain, int32_t limit) {
  Chunks chunks;
  pool.parallel_for(begin, end, grain, limit, Chunks::record, &chunks);
  return chunks.ranges;
}

using Ranges = std::set<std::pair<int64_t, int64_t>>;

TEST(ThreadPool, CutsTheRangeIntoEqualChunks) {
  ThreadPool pool(3);
  EXPECT_EQ(pool.size(), 3);
  EXPECT_EQ(chunks_of(pool, 0, 10, 1, 3), (Ranges{{0, 4}, {4, 8}, {8, 10}}));
  EXPECT_EQ(chunks_of(pool, 5, 11, 3, 3), (Ranges{{5, 8}, {8, 11}}));
  EXPECT_EQ(chunks_of(pool, 0, 10, 1, 2), (Ranges{{0, 5}, {5, 10}}));
  EXPECT_EQ(chunks_of(pool, 0, 10, 100, 3), (Ranges{{0, 10}}));
  EXPECT_EQ(chunks_of(pool, 3, 3, 1, 3), Ranges{});
}

void add(int64_t begin, int64_t end, void* state) {
  static_cast<std::atomic<int64_t>*>(state)->fetch_add(end - begin);
}

TEST(ThreadPool, ManyLoopsFromManyThreads) {
  ThreadPool pool(3);
  std::atomic<int64_t> total{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&] {
      for (int i = 0; i < 300; ++i) pool.parallel_for(0, 100, 1, 3, add, &total);
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 3 * 300 * 100);
}

struct Nested {
  ThreadPool* pool;
  std::atomic<int64_t> total{0};
};

TEST(ThreadPool, ALoopInsideALoopRunsOnItsCaller) {
  Nested nested{.pool = nullptr};
  ThreadPool pool(2);
  nested.pool = &pool;
  pool.parallel_for(
      0, 4, 1, 2,
      [](int64_t begin, int64_t end, void* state) {
        auto& outer = *static_cast<Nested*>(state);
        for (int64_t i = begin; i < end; ++i) {
          outer.pool->parallel_for(0, 10, 1, 2, add, &outer.total);
        }
      },
      &nested);
  EXPECT_EQ(nested.total, 40);
}

TEST(AvailableCpus, IsAtLeastOne) { EXPECT_GE(available_cpus(), 1); }

}  // namespace
}  // namespace litz
