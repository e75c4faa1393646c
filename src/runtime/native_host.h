// The host of an artifact in a process without PyTorch: memory from a BlockPool, threads from a
// ThreadPool, no library ops.
#pragma once

#include <litz/artifact.h>

#include <memory>
#include <string>

#include "runtime/block_pool.h"
#include "runtime/host_table.h"
#include "runtime/thread_pool.h"

namespace litz {

// The host side of one run. Tensors that it allocates keep the block pool alive.
class NativeRun {
 public:
  NativeRun(std::shared_ptr<BlockPool> blocks, ThreadPool& threads);
  NativeRun(const NativeRun&) = delete;
  NativeRun& operator=(const NativeRun&) = delete;

  const LitzHost& host() const { return host_; }
  // What the artifact gave to LitzHost::fail, last call.
  const std::string& message() const { return message_; }

 private:
  friend LitzHost make_host_table<NativeRun>(NativeRun* run);
  static int allocate(void* self, LitzTensor* tensor);
  static void release(void* self, LitzTensor* tensor);
  static int view(void* self, const LitzTensor* base, LitzTensor* view);
  static int call(void* self, int32_t op, const LitzValue* args, int32_t num_args,
                  LitzValue* results, int32_t num_results);
  static int copy(void* self, const LitzTensor* from, LitzTensor* to);
  static void parallel_for(void* self, int64_t begin, int64_t end, int64_t grain,
                           LitzRangeBody body, void* state);
  static int32_t num_threads(void* self);
  static void fail(void* self, int status, const char* message);

  std::shared_ptr<BlockPool> blocks_;
  ThreadPool& threads_;
  std::string message_;
  LitzHost host_;
};

// Frees a tensor that a NativeRun allocated, or a view of one. A tensor without a handle is left
// alone. May be called after the run is gone and from any thread.
void release_native_tensor(LitzTensor& tensor);

}  // namespace litz
