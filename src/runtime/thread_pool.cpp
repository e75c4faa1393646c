#include "runtime/thread_pool.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace litz {
namespace {

// Loops tend to follow each other closely; after about this many checks a thread sleeps.
constexpr int kSpins = 2000;

template <class Done>
bool spin_until(Done done) {
  for (int i = 0; i < kSpins; ++i) {
    if (done()) return true;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  return false;
}

}  // namespace

int32_t available_cpus() {
  cpu_set_t mask;
  int64_t cpus = 1;
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) cpus = CPU_COUNT(&mask);
  std::ifstream quota_file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  int64_t period = 0;
  if (quota_file >> quota >> period && quota != "max" && period > 0) {
    cpus = std::min(cpus, (int64_t{std::stoll(quota)} + period - 1) / period);
  }
  return static_cast<int32_t>(std::max<int64_t>(cpus, 1));
}

ThreadPool::ThreadPool(int32_t count) : owner_(getpid()) {
  if (count < 1) count = available_cpus();
  workers_.reserve(static_cast<size_t>(count - 1));
  for (int32_t i = 1; i < count; ++i) workers_.emplace_back([this, i] { work(i); });
}

ThreadPool::~ThreadPool() {
  if (getpid() != owner_) {
    // The threads did not survive the fork: there is nobody to join.
    for (std::thread& worker : workers_) worker.detach();
    return;
  }
  stopping_ = true;
  ++generation_;
  generation_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run_chunk(int32_t index) const {
  const int64_t begin = job_.begin + index * job_.chunk;
  if (begin < job_.end) {
    job_.body(begin, std::min(begin + job_.chunk, job_.end), job_.state);
  }
}

void ThreadPool::work(int32_t index) {
  for (uint32_t seen = 0;; ++seen) {
    if (!spin_until([&] { return generation_.load(std::memory_order_acquire) != seen; })) {
      generation_.wait(seen, std::memory_order_acquire);
    }
    if (stopping_) return;
    run_chunk(index);
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) pending_.notify_one();
  }
}

void ThreadPool::parallel_for(int64_t begin, int64_t end, int64_t grain, int32_t limit,
                              LitzRangeBody body, void* state) {
  if (begin >= end) return;
  const int64_t length = end - begin;
  const int64_t chunks =
      std::clamp<int64_t>(length / std::max<int64_t>(grain, 1), 1, std::min(limit, size()));
  const int64_t chunk = (length + chunks - 1) / chunks;
  if (chunks == 1 || getpid() != owner_ || busy_.exchange(true, std::memory_order_acquire)) {
    for (int64_t at = begin; at < end; at += chunk) body(at, std::min(at + chunk, end), state);
    return;
  }
  job_ = {begin, end, chunk, body, state};
  pending_.store(static_cast<int32_t>(workers_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  run_chunk(0);
  if (!spin_until([&] { return pending_.load(std::memory_order_acquire) == 0; })) {
    for (int32_t left; (left = pending_.load(std::memory_order_acquire)) != 0;) {
      pending_.wait(left, std::memory_order_acquire);
    }
  }
  busy_.store(false, std::memory_order_release);
}

}  // namespace litz
