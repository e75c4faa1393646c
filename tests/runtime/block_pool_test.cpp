#include "runtime/block_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace litz {
namespace {

TEST(BlockPool, HandsOutTheBlockThatCameBack) {
  BlockPool pool(size_t{1} << 30);
  for (const size_t bytes : {size_t{1}, size_t{5000}, size_t{3} << 20}) {
    const size_t idle = pool.usage().idle;
    const Block first = pool.acquire(bytes);
    ASSERT_NE(first.data, nullptr);
    EXPECT_GE(first.bytes, bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first.data) % 64, 0u);
    std::memset(first.data, 1, first.bytes);
    pool.release(first);
    const Block second = pool.acquire(bytes);
    EXPECT_EQ(second.data, first.data);
    EXPECT_EQ(pool.usage().idle, idle);
    pool.release(second);
    EXPECT_EQ(pool.usage().idle, idle + second.bytes);
  }
}

TEST(BlockPool, KeepsNoMoreThanItsLimit) {
  BlockPool pool(10000);
  const Block a = pool.acquire(4096);
  const Block b = pool.acquire(4096);
  const Block c = pool.acquire(4096);
  const Block huge = pool.acquire(size_t{4} << 20);
  for (const Block& block : {a, b, c}) pool.release(block);
  EXPECT_EQ(pool.usage().idle, 8192u);
  EXPECT_EQ(pool.acquire(4096).data, c.data) << "the most recent one first";
  pool.release(c);
  pool.release(huge);
  EXPECT_EQ(pool.usage().idle, 0u) << "a block beyond the limit is not kept";
}

TEST(BlockPool, CountsWhatIsHandedOut) {
  BlockPool pool(size_t{1} << 30);
  const Block a = pool.acquire(4096);
  const Block b = pool.acquire(size_t{3} << 20);
  EXPECT_EQ(pool.usage().in_use, a.bytes + b.bytes);
  pool.release(a);
  EXPECT_EQ(pool.usage().in_use, b.bytes);
  EXPECT_EQ(pool.usage().idle, a.bytes);
  pool.release(pool.acquire(4096));
  EXPECT_EQ(pool.usage().in_use, b.bytes);
  EXPECT_EQ(pool.trim(), a.bytes);
  EXPECT_EQ(pool.usage().idle, 0u);
  EXPECT_EQ(pool.trim(), 0u);
  pool.release(b);
  pool.set_limit(b.bytes - 1);
  EXPECT_EQ(pool.usage().idle, 0u);
  EXPECT_EQ(pool.usage().limit, b.bytes - 1);
}

TEST(BlockPool, MovesPagesOfIdleBlocksIntoOneOfAnotherSize) {
  constexpr size_t kMiB = size_t{1} << 20;
  BlockPool pool(size_t{4} << 30);
  std::vector<Block> blocks;
  for (int i = 0; i < 12; ++i) {
    blocks.push_back(pool.acquire(12 * kMiB));
    std::memset(blocks.back().data, i + 1, blocks.back().bytes);
  }
  for (const Block& block : blocks) pool.release(block);
  ASSERT_EQ(pool.usage().idle, 144 * kMiB);
  // Two of the idle ones and half of a third.
  const Block first = pool.acquire(13 * kMiB);
  ASSERT_NE(first.data, nullptr);
  EXPECT_EQ(pool.usage().idle, 144 * kMiB) << "there is room for a fresh one";
  const Block second = pool.acquire(30 * kMiB);
  ASSERT_NE(second.data, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(second.data) % 64, 0u);
  EXPECT_EQ(pool.usage().idle, 114 * kMiB) << "pages of idle blocks have moved";
  EXPECT_EQ(pool.usage().in_use, first.bytes + second.bytes);
  const auto* bytes = static_cast<const unsigned char*>(second.data);
  for (size_t at = 0; at < second.bytes; at += 4096)
    ASSERT_TRUE(bytes[at] >= 1 && bytes[at] <= 12) << "a page at " << at << " is a fresh one";
  std::memset(second.data, 99, second.bytes);
  // More than there is: the rest is fresh.
  const Block all = pool.acquire(160 * kMiB);
  ASSERT_NE(all.data, nullptr);
  std::memset(all.data, 7, all.bytes);
  EXPECT_EQ(bytes[0], 99);
  EXPECT_EQ(bytes[second.bytes - 1], 99);
  EXPECT_EQ(pool.usage().idle, 0u);
  // Pages that have moved before move again.
  pool.release(all);
  const Block again = pool.acquire(144 * kMiB);
  ASSERT_NE(again.data, nullptr);
  bytes = static_cast<const unsigned char*>(again.data);
  for (size_t at = 0; at < again.bytes; at += 4096)
    ASSERT_EQ(bytes[at], 7) << "a page at " << at << " is another one";
  EXPECT_EQ(pool.usage().idle, all.bytes - again.bytes);
  for (const Block& block : {first, second, again}) pool.release(block);
  EXPECT_EQ(pool.usage().in_use, 0u);
  EXPECT_EQ(pool.trim(), first.bytes + second.bytes + all.bytes);
}

TEST(BlockPool, WithoutMemoryItsOwnGoesBackFirst) {
  int calls = 0;
  int failures = 0;
  BlockPool pool(size_t{1} << 30, [&](size_t bytes) -> void* {
    ++calls;
    if (failures > 0 && failures-- > 0) return nullptr;
    return std::aligned_alloc(4096, bytes);
  });
  pool.release(pool.acquire(4096));
  failures = 1;
  const Block other = pool.acquire(8192);
  EXPECT_NE(other.data, nullptr);
  EXPECT_EQ(pool.usage().idle, 0u) << "what was kept went back before the second try";
  EXPECT_EQ(calls, 3);
  failures = 1;
  EXPECT_EQ(pool.acquire(16384).data, nullptr) << "there is nothing to give back";
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(pool.usage().in_use, other.bytes);
  pool.release(other);
}

TEST(BlockPool, ZeroBytesNeedNoBlock) {
  BlockPool pool(10000);
  const Block empty = pool.acquire(0);
  EXPECT_EQ(empty.bytes, 0u);
  pool.release(empty);
  EXPECT_EQ(pool.usage().idle, 0u);
}

TEST(BlockPool, MoreThanTheSystemHasIsNoBlock) {
  BlockPool pool(10000);
  EXPECT_EQ(pool.acquire(size_t{1} << 60).data, nullptr);
}

}  // namespace
}  // namespace litz
