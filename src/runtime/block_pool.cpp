#include "runtime/block_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <utility>

namespace litz {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kSmallestBlock = 4096;
// Bounds the search in acquire; more different sizes than this are not worth keeping.
constexpr size_t kMaxIdleBlocks = 64;

// Rounds up to one of eight sizes for each power of two, so that nearly equal requests share blocks
// and at most an eighth is wasted.
size_t round_to_class(size_t bytes) {
  if (bytes <= kSmallestBlock) return kSmallestBlock;
  const size_t step = std::bit_floor(bytes - 1) / 8;
  return (bytes + step - 1) / step * step;
}

void* allocate_from_system(size_t bytes) {
  if (bytes < kHugePage)
    return std::aligned_alloc(kSmallestBlock,
                              (bytes + kSmallestBlock - 1) / kSmallestBlock * kSmallestBlock);
  const size_t mapped = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  // One huge page more than needed, then the unaligned ends are given back.
  void* raw = mmap(nullptr, mapped + kHugePage, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  const auto start = reinterpret_cast<uintptr_t>(raw);
  const uintptr_t aligned = (start + kHugePage - 1) / kHugePage * kHugePage;
  if (aligned > start) munmap(raw, aligned - start);
  if (const size_t tail = start + kHugePage - aligned; tail > 0) {
    munmap(reinterpret_cast<void*>(aligned + mapped), tail);
  }
  void* data = reinterpret_cast<void*>(aligned);
  madvise(data, mapped, MADV_HUGEPAGE);
  return data;
}

void deallocate(Block block) {
  if (block.bytes < kHugePage) {
    std::free(block.data);
  } else {
    munmap(block.data, (block.bytes + kHugePage - 1) / kHugePage * kHugePage);
  }
}

}  // namespace

size_t BlockPool::default_limit() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE)) /
         8;
}

BlockPool::BlockPool(size_t limit, Allocate allocate)
    : allocate_(allocate ? std::move(allocate) : Allocate(allocate_from_system)), limit_(limit) {}

BlockPool::~BlockPool() {
  for (const Block& block : idle_) deallocate(block);
}

Block BlockPool::acquire(size_t bytes) {
  if (bytes == 0) return {};
  const size_t capacity = round_to_class(bytes);
  {
    std::lock_guard lock(mutex_);
    const auto found = std::find_if(idle_.rbegin(), idle_.rend(),
                                    [&](const Block& b) { return b.bytes == capacity; });
    if (found != idle_.rend()) {
      const Block block = *found;
      idle_.erase(std::next(found).base());
      idle_bytes_ -= block.bytes;
      bytes_in_use_ += block.bytes;
      return block;
    }
  }
  void* data = allocate_(capacity);
  if (data == nullptr && trim() > 0) data = allocate_(capacity);
  if (data == nullptr) return {};
  std::lock_guard lock(mutex_);
  bytes_in_use_ += capacity;
  return {data, capacity};
}

void BlockPool::release(Block block) {
  if (block.data == nullptr) return;
  std::vector<Block> evicted;
  {
    std::lock_guard lock(mutex_);
    bytes_in_use_ -= block.bytes;
    idle_.push_back(block);
    idle_bytes_ += block.bytes;
    evicted = evict(limit_);
  }
  for (const Block& old : evicted) deallocate(old);
}

std::vector<Block> BlockPool::evict(size_t limit) {
  size_t count = 0;
  for (; idle_bytes_ > limit || idle_.size() - count > kMaxIdleBlocks; ++count)
    idle_bytes_ -= idle_[count].bytes;
  const auto end = idle_.begin() + static_cast<ptrdiff_t>(count);
  std::vector<Block> evicted(idle_.begin(), end);
  idle_.erase(idle_.begin(), end);
  return evicted;
}

BlockPool::Usage BlockPool::usage() const {
  std::lock_guard lock(mutex_);
  return {bytes_in_use_, idle_bytes_, limit_};
}

void BlockPool::set_limit(size_t limit) {
  std::vector<Block> evicted;
  {
    std::lock_guard lock(mutex_);
    limit_ = limit;
    evicted = evict(limit);
  }
  for (const Block& block : evicted) deallocate(block);
}

size_t BlockPool::trim() {
  std::vector<Block> evicted;
  {
    std::lock_guard lock(mutex_);
    evicted = evict(0);
  }
  size_t bytes = 0;
  for (const Block& block : evicted) {
    bytes += block.bytes;
    deallocate(block);
  }
  return bytes;
}

}  // namespace litz
