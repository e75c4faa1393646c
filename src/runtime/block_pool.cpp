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
// That the pool holds beyond the most that was in use at once, before pages are moved.
constexpr size_t kSpareBytes = size_t{16} << 20;

// Rounds up to one of eight sizes for each power of two, so that nearly equal requests share blocks
// and at most an eighth is wasted.
size_t round_to_class(size_t bytes) {
  if (bytes <= kSmallestBlock) return kSmallestBlock;
  const size_t step = std::bit_floor(bytes - 1) / 8;
  return (bytes + step - 1) / step * step;
}

// Of a block that is mapped.
size_t mapped_bytes(size_t bytes) { return (bytes + kHugePage - 1) / kHugePage * kHugePage; }

void* map_huge_pages(size_t mapped) {
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

// Moves pages, a huge one at a time: those of a block may come from several places, and what cannot
// be moved at once loses its target. Bytes that have moved: all, or as far as it went.
size_t move(char* from, char* to, size_t bytes) {
  size_t moved = 0;
  while (moved < bytes && mremap(from + moved, kHugePage, kHugePage, MREMAP_MAYMOVE | MREMAP_FIXED,
                                 to + moved) != MAP_FAILED)
    moved += kHugePage;
  return moved;
}

void* allocate_from_system(size_t bytes) {
  if (bytes >= kHugePage) return map_huge_pages(mapped_bytes(bytes));
  return std::aligned_alloc(kSmallestBlock,
                            (bytes + kSmallestBlock - 1) / kSmallestBlock * kSmallestBlock);
}

void deallocate(Block block) {
  if (block.bytes < kHugePage) {
    std::free(block.data);
  } else {
    munmap(block.data, mapped_bytes(block.bytes));
  }
}

}  // namespace

size_t BlockPool::default_limit() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE)) /
         8;
}

BlockPool::BlockPool(size_t limit, Allocate allocate)
    : allocate_(std::move(allocate)), limit_(limit) {}

BlockPool::~BlockPool() {
  for (const Block& block : idle_) deallocate(block);
}

Block BlockPool::acquire(size_t bytes) {
  if (bytes == 0) return {};
  const size_t capacity = round_to_class(bytes);
  std::vector<Block> sources;
  {
    std::lock_guard lock(mutex_);
    most_in_use_ = std::max(most_in_use_, bytes_in_use_ + capacity);
    const auto found = std::find_if(idle_.rbegin(), idle_.rend(),
                                    [&](const Block& b) { return b.bytes == capacity; });
    if (found != idle_.rend()) {
      const Block block = *found;
      idle_.erase(std::next(found).base());
      idle_bytes_ -= block.bytes;
      bytes_in_use_ += block.bytes;
      return block;
    }
    sources = take_pages(capacity);
  }
  const auto allocate = [&] {
    return allocate_ ? allocate_(capacity) : allocate_from_system(capacity);
  };
  void* data = sources.empty() ? nullptr : move_pages(std::move(sources), capacity);
  if (data == nullptr) data = allocate();
  if (data == nullptr && trim() > 0) data = allocate();
  if (data == nullptr) return {};
  std::lock_guard lock(mutex_);
  bytes_in_use_ += capacity;
  return {data, capacity};
}

std::vector<Block> BlockPool::take_pages(size_t capacity) {
  const size_t spare = std::max(kSpareBytes, most_in_use_ / 16);
  if (allocate_ || capacity < kHugePage ||
      bytes_in_use_ + idle_bytes_ + capacity <= most_in_use_ + spare)
    return {};
  std::vector<Block> taken;
  size_t bytes = 0;
  for (auto block = idle_.begin(); block != idle_.end() && bytes < capacity;) {
    if (block->bytes < kHugePage) {
      ++block;
      continue;
    }
    bytes += mapped_bytes(block->bytes);
    idle_bytes_ -= block->bytes;
    taken.push_back(*block);
    block = idle_.erase(block);
  }
  return taken;
}

void* BlockPool::move_pages(std::vector<Block> sources, size_t capacity) {
  const size_t wanted = mapped_bytes(capacity);
  auto* data = static_cast<char*>(map_huge_pages(wanted));
  if (data == nullptr) {
    for (const Block& block : sources) deallocate(block);
    return nullptr;
  }
  size_t filled = 0;
  while (!sources.empty()) {
    const Block source = sources.back();
    auto* from = static_cast<char*>(source.data);
    const size_t bytes = std::min(mapped_bytes(source.bytes), wanted - filled);
    if (const size_t moved = move(from, data + filled, bytes); moved < bytes) {
      // What has moved is where it went to; of the page that has not the target may be lost.
      filled += moved;
      munmap(data, filled);
      if (wanted > filled + kHugePage)
        munmap(data + filled + kHugePage, wanted - filled - kHugePage);
      munmap(from + moved, mapped_bytes(source.bytes) - moved);
      sources.pop_back();
      for (const Block& block : sources) deallocate(block);
      return nullptr;
    }
    sources.pop_back();
    filled += bytes;
    // What is left of the last one stays idle.
    if (const size_t left = mapped_bytes(source.bytes) - bytes; left > 0) {
      std::lock_guard lock(mutex_);
      idle_.insert(idle_.begin(), {from + bytes, left});
      idle_bytes_ += left;
    }
  }
  return data;
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
