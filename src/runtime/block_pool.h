// Memory that is kept and reused: workspaces and large outputs.
//
// Fresh memory costs a page fault for every 4 KiB at its first touch, which for a large tensor is
// several times the time of the work done on it. The pool keeps a bounded number of bytes of
// returned blocks, hands the most recently used one out again, and backs large blocks by huge pages
// where the kernel allows. Where it would hold notably more than was ever in use at once, the pages
// of idle blocks move into a block of another size.
#pragma once

#include <cstddef>
#include <functional>
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
  // Memory of so many bytes, 64-byte aligned; nullptr where there is none left.
  using Allocate = std::function<void*(size_t bytes)>;
  // Keeps at most `limit` bytes of returned blocks. `allocate` stands in for the system's memory.
  explicit BlockPool(size_t limit = default_limit(), Allocate allocate = {});
  ~BlockPool();  // frees the idle blocks; blocks in use must have been returned
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // A block of at least `bytes`; data is nullptr where the system has no memory left, even after
  // the idle blocks went back to it. Zero bytes give an empty block.
  Block acquire(size_t bytes);
  void release(Block block);

  struct Usage {
    size_t in_use = 0;  // bytes of blocks that are handed out
    size_t idle = 0;    // ... that came back and are kept
    size_t limit = 0;   // of the idle ones
  };
  Usage usage() const;
  // Gives idle blocks back to the system until no more than `limit` bytes are kept, from now on.
  void set_limit(size_t limit);
  // Gives all idle blocks back to the system: their bytes.
  size_t trim();

  // An eighth of the machine's memory.
  static size_t default_limit();

 private:
  // Takes the oldest idle blocks out that are over the limit. The caller has the mutex.
  std::vector<Block> evict(size_t limit);
  // Takes idle blocks out whose pages a block of `capacity` is to be made of; none where a fresh
  // one may be had. The caller has the mutex.
  std::vector<Block> take_pages(size_t capacity);
  // A block with the pages of `sources`, which are used up, and fresh ones where those are too few;
  // nullptr where the system moves no more.
  void* move_pages(std::vector<Block> sources, size_t capacity);

  const Allocate allocate_;  // nothing: the system's
  mutable std::mutex mutex_;
  size_t limit_;
  std::vector<Block> idle_;  // oldest first
  size_t idle_bytes_ = 0;
  size_t bytes_in_use_ = 0;
  size_t most_in_use_ = 0;
};

}  // namespace litz
