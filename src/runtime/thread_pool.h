// The threads of the native runtime, and of the PyTorch door where torch lends none.
#pragma once

#include <litz/artifact.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace litz {

// CPUs that this process may use: its affinity mask, cut to its cgroup's quota; at least 1.
int32_t available_cpus();

// `parallel_for` may be called from any thread. One loop has the workers at a time; a loop that
// finds them busy, is nested in another, or runs in a forked child runs on its caller alone.
class ThreadPool {
 public:
  // `count` threads take part, the caller of parallel_for being one of them. count < 1 means
  // available_cpus().
  explicit ThreadPool(int32_t count);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int32_t size() const { return static_cast<int32_t>(workers_.size()) + 1; }

  // Cuts [begin, end) into at most `limit` equal chunks, each of at least `grain`, one for each
  // thread. The chunks depend on nothing else. `limit` is at most size().
  void parallel_for(int64_t begin, int64_t end, int64_t grain, int32_t limit, LitzRangeBody body,
                    void* state);

 private:
  struct Job {
    int64_t begin = 0;
    int64_t end = 0;
    int64_t chunk = 0;
    LitzRangeBody body = nullptr;
    void* state = nullptr;
  };
  void work(int32_t index);
  void run_chunk(int32_t index) const;

  const pid_t owner_;
  std::atomic<bool> busy_{false};        // one loop has the workers
  Job job_;                              // written before generation_ is raised
  std::atomic<uint32_t> generation_{0};  // number of the current job
  std::atomic<int32_t> pending_{0};      // workers that have not finished it
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> workers_;
};

}  // namespace litz
