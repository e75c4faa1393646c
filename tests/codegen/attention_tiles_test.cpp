#include "codegen/cpp/attention_tiles.h"

#include <gtest/gtest.h>

#include "codegen/cpp/prelude.h"

namespace litz {
namespace {

// Strips cover the queries and steps are whole panels, whatever the sizes; the arrays stay small
// enough for a stack.
TEST(AttentionTiles, CoverEverySize) {
  for (int vector_bytes : {16, 32, 64}) {
    for (int64_t queries : {0, 1, 2, 6, 7, 14, 15, 49, 197, 1500}) {
      for (int64_t keys : {0, 2, 17, 49, 384, 385, 1500, 100000}) {
        for (int64_t width : {2, 17, 64, 80, 256}) {
          for (bool is_in_order : {false, true}) {
            AttentionSize size;
            size.queries = queries;
            size.keys = keys;
            size.factors = size.features = width;
            size.is_in_order = is_in_order;
            const AttentionTiles t = plan_attention_tiles(size, vector_bytes);
            EXPECT_GE(t.block_strips, 1);
            EXPECT_GE(t.keys, t.panel());
            EXPECT_EQ(t.keys % t.panel(), 0);
            EXPECT_LE(t.block_rows() * width, 48 * 1024);
            EXPECT_LE(t.strip_rows * t.keys, 8 * 1024);
            EXPECT_FALSE(t.packs_all && (keys == 0 || !is_in_order || t.in_place));
            if (t.packs_all) {
              EXPECT_LE(keys * width * 2, 256 * 1024);
            }
            if (t.in_place) {
              EXPECT_TRUE(is_in_order && queries > 0 && width % t.lanes == 0);
            }
            if (queries == 0) {
              EXPECT_EQ(t.strips, 0);
              continue;
            }
            EXPECT_EQ(
                t.tall_strips * t.strip_rows + (t.strips - t.tall_strips) * (t.strip_rows - 1),
                queries);
            EXPECT_GE(t.tall_strips, 1);
            EXPECT_LE(t.block_strips, t.strips);
          }
        }
      }
    }
  }
}

// A matrix unit's strips are of one height but for the last one, which has a row at least, and
// steps are whole tiles of pairs of keys.
TEST(AttentionTiles, FillAMatrixUnit) {
  for (int64_t queries : {0, 1, 2, 7, 16, 17, 33, 49, 197, 1500}) {
    for (int64_t keys : {0, 2, 17, 385, 100000}) {
      for (int64_t width : {2, 64, 256}) {
        AttentionSize size;
        size.queries = queries;
        size.keys = keys;
        size.factors = size.features = width;
        size.pairs = size.matrix_unit = true;
        const AttentionTiles t = plan_attention_tiles(size, 64);
        EXPECT_EQ(t.matrix_unit, !t.in_place);
        EXPECT_EQ(t.in_place, queries == 1 && width % 16 == 0);
        EXPECT_LE(t.strip_rows, 2 * kTileRows);
        EXPECT_EQ(t.keys % (2 * kTilePairs), 0);
        EXPECT_LE(t.block_rows() * width, 48 * 1024);
        if (queries == 0) {
          EXPECT_TRUE(t.ends_short);
          continue;
        }
        EXPECT_EQ(t.tall_strips, t.strips);
        EXPECT_LT((t.strips - 1) * t.strip_rows, queries);
        EXPECT_GE(t.strips * t.strip_rows, queries);
        EXPECT_EQ(t.ends_short, t.strips * t.strip_rows > queries);
      }
    }
  }
}

// Queries of heads that share their keys are a strip of their own.
TEST(AttentionTiles, KeepHeadsTogether) {
  AttentionSize size;
  size.queries = 32;
  size.rows = 4;
  size.keys = 1024;
  size.factors = size.features = 128;
  const AttentionTiles t = plan_attention_tiles(size, 64);
  EXPECT_TRUE(t.in_place);
  EXPECT_EQ(t.strips, 8);
  EXPECT_EQ(t.tall_strips, 8);
  EXPECT_EQ(t.strip_rows, 4);
  EXPECT_EQ(t.block_strips, 1);
}

// Threads can share out what is worth it.
TEST(AttentionTiles, MakeItemsForThreads) {
  AttentionSize size;
  size.items = 2;
  size.queries = size.keys = 512;
  size.factors = size.features = 64;
  const AttentionTiles t = plan_attention_tiles(size, 32);
  EXPECT_GE(2 * (t.strips + t.block_strips - 1) / t.block_strips, 16);
}

}  // namespace
}  // namespace litz
