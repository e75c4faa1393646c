// Memory that is kept and reused: workspaces and large outputs.
//
// Fresh memory costs a page fault for every 4 KiB at its first touch, which for a large tensor is
// several times the time of the work done on it. The pool keeps a bounded number of bytes of
// returned blocks, hands the most recently used one out again, and backs large blocks by huge pages
// where the kernel allows.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

namespace litz {

// 64-byte aligned memory, uninitialised. `bytes` is the capacity, at least what was asked for.
struct Block {
  void* data = nullptr;
  size_t bytes = 0;
};

// Thread-safe.
class BlockPool {
 public:
  // Keeps at most `max_idle_bytes` of returned blocks.
  explicit BlockPool(size_t max_idle_bytes = default_idle_bytes());
  ~BlockPool();  // frees the idle blocks; blocks in use must have been returned
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // A block of at least `bytes`; data is nullptr where the system has no memory left. Zero bytes
  // give an empty block.
  Block acquire(size_t bytes);
  void release(Block block);

  size_t idle_bytes() const;

  // An eighth of the machine's memory.
  static size_t default_idle_bytes();

 private:
  const size_t max_idle_bytes_;
  mutable std::mutex mutex_;
  std::vector<Block> idle_;  // oldest first
  size_t idle_bytes_ = 0;
};

}  // namespace litz
