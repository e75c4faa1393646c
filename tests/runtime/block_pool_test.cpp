#include "runtime/block_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

namespace litz {
namespace {

TEST(BlockPool, HandsOutTheBlockThatCameBack) {
  BlockPool pool(size_t{1} << 30);
  for (const size_t bytes : {size_t{1}, size_t{5000}, size_t{3} << 20}) {
    const size_t idle = pool.idle_bytes();
    const Block first = pool.acquire(bytes);
    ASSERT_NE(first.data, nullptr);
    EXPECT_GE(first.bytes, bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first.data) % 64, 0u);
    std::memset(first.data, 1, first.bytes);
    pool.release(first);
    const Block second = pool.acquire(bytes);
    EXPECT_EQ(second.data, first.data);
    EXPECT_EQ(pool.idle_bytes(), idle);
    pool.release(second);
    EXPECT_EQ(pool.idle_bytes(), idle + second.bytes);
  }
}

TEST(BlockPool, KeepsNoMoreThanItsLimit) {
  BlockPool pool(10000);
  const Block a = pool.acquire(4096);
  const Block b = pool.acquire(4096);
  const Block c = pool.acquire(4096);
  const Block huge = pool.acquire(size_t{4} << 20);
  for (const Block& block : {a, b, c}) pool.release(block);
  EXPECT_EQ(pool.idle_bytes(), 8192u);
  EXPECT_EQ(pool.acquire(4096).data, c.data) << "the most recent one first";
  pool.release(c);
  pool.release(huge);
  EXPECT_EQ(pool.idle_bytes(), 0u) << "a block beyond the limit is not kept";
}

TEST(BlockPool, ZeroBytesNeedNoBlock) {
  BlockPool pool(10000);
  const Block empty = pool.acquire(0);
  EXPECT_EQ(empty.bytes, 0u);
  pool.release(empty);
  EXPECT_EQ(pool.idle_bytes(), 0u);
}

TEST(BlockPool, MoreThanTheSystemHasIsNoBlock) {
  BlockPool pool(10000);
  EXPECT_EQ(pool.acquire(size_t{1} << 60).data, nullptr);
}

}  // namespace
}  // namespace litz
