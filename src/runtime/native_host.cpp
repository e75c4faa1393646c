#include "runtime/native_host.h"

#include <atomic>
#include <utility>

namespace litz {
namespace {

// Owns a block; tensors and their views share it.
struct NativeStorage {
  std::atomic<int32_t> references{1};
  std::shared_ptr<BlockPool> blocks;
  Block block;
};

}  // namespace

NativeRun::NativeRun(std::shared_ptr<BlockPool> blocks, ThreadPool& threads)
    : blocks_(std::move(blocks)), threads_(threads), host_(make_host_table(this)) {}

int NativeRun::allocate(void* self, LitzTensor* tensor) {
  auto& run = *static_cast<NativeRun*>(self);
  const int64_t bytes = storage_bytes(*tensor);
  const Block block = run.blocks_->acquire(static_cast<size_t>(bytes));
  if (bytes > 0 && block.data == nullptr) {
    run.message_ = "no memory for an output of " + std::to_string(bytes) + " bytes";
    return LITZ_OUT_OF_MEMORY;
  }
  auto* storage = new NativeStorage{.blocks = run.blocks_, .block = block};
  tensor->data = block.data;
  tensor->handle = storage;
  return LITZ_OK;
}

void release_native_tensor(LitzTensor& tensor) {
  auto* storage = static_cast<NativeStorage*>(std::exchange(tensor.handle, nullptr));
  if (storage == nullptr || storage->references.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  storage->blocks->release(storage->block);
  delete storage;
}

void NativeRun::release(void*, LitzTensor* tensor) { release_native_tensor(*tensor); }

int NativeRun::view(void*, const LitzTensor* base, LitzTensor* view) {
  auto* storage = static_cast<NativeStorage*>(base->handle);
  if (storage != nullptr) storage->references.fetch_add(1, std::memory_order_relaxed);
  view->handle = storage;
  return LITZ_OK;
}

int NativeRun::call(void* self, int32_t op, const LitzValue*, int32_t, LitzValue*, int32_t) {
  static_cast<NativeRun*>(self)->message_ = "the graph calls library op number " +
                                            std::to_string(op) +
                                            ", and the native runtime has no library ops";
  return LITZ_UNSUPPORTED;
}

int NativeRun::copy(void*, const LitzTensor* from, LitzTensor* to) {
  copy_elements(*from, *to);
  return LITZ_OK;
}

void NativeRun::parallel_for(void* self, int64_t begin, int64_t end, int64_t grain,
                             LitzRangeBody body, void* state) {
  ThreadPool& threads = static_cast<NativeRun*>(self)->threads_;
  threads.parallel_for(begin, end, grain, threads.size(), body, state);
}

int32_t NativeRun::num_threads(void* self) {
  return static_cast<NativeRun*>(self)->threads_.size();
}

void NativeRun::fail(void* self, int, const char* message) {
  static_cast<NativeRun*>(self)->message_ = message;
}

}  // namespace litz
