#include "codegen/cpp/product_tiles.h"

#include <gtest/gtest.h>

namespace litz {
namespace {

// Strips cover the rows and blocks the columns, whatever the sizes; blocks end with whole vectors
// and panels, and their arrays stay small enough for a stack.
TEST(ProductTiles, CoverEverySize) {
  for (int vector_bytes : {32, 64}) {
    for (int64_t rows : {2, 3, 6, 7, 13, 24, 25, 100, 1000}) {
      for (int64_t columns : {2, 7, 16, 17, 64, 100, 768, 50257}) {
        for (int64_t factors : {2, 63, 64, 200, 768, 3072, 8192}) {
          for (bool has_rows : {false, true}) {
            const ProductSize size{1, rows, columns, factors, 1, has_rows, !has_rows};
            const ProductTiles t = plan_product_tiles(size, vector_bytes);
            EXPECT_EQ(t.tall_strips * t.strip_rows + (t.strips - t.tall_strips) * t.low_rows, rows);
            EXPECT_GE(t.tall_strips, 1);
            EXPECT_EQ(t.block_columns % t.panel(), 0);
            EXPECT_EQ(t.block_columns % t.lanes, 0);
            EXPECT_GE(t.block_strips, 1);
            EXPECT_GE(t.factors, 1);
            // One block of rows packs the factors of a step, more of them pack all.
            const int64_t packed = t.row_blocks() == 1 ? t.factors : factors;
            EXPECT_LE(t.block_columns * packed,
                      t.form == ProductTiles::Form::kPacked
                          ? std::max<int64_t>(192 * 1024, t.panel() * packed)
                          : INT64_MAX);
            EXPECT_TRUE(t.factors == factors || t.factors % 16 == 0) << "whole lines";
            EXPECT_LE(t.block_rows() * t.block_columns, 64 * 1024);
            if (t.form == ProductTiles::Form::kInPlace) {
              EXPECT_EQ(columns % t.panel(), 0) << "reads behind the last column";
              EXPECT_EQ(t.strips, 1);
            }
          }
        }
      }
    }
  }
}

TEST(ProductTiles, HaveAFormForTheRows) {
  using Form = ProductTiles::Form;
  const auto form = [](int64_t rows, bool has_rows, bool has_dots) {
    return plan_product_tiles({1, rows, 768, 768, 1, has_rows, has_dots}, 32).form;
  };
  EXPECT_EQ(form(4, false, true), Form::kDots);
  EXPECT_EQ(form(4, true, false), Form::kInPlace);
  EXPECT_EQ(form(4, false, false), Form::kPacked) << "half floats";
  EXPECT_EQ(form(100, false, true), Form::kPacked);
  EXPECT_EQ(form(100, true, false), Form::kPacked);
}

TEST(ProductTiles, FarRowsAreMoreThanTheCacheHoldsOfALine) {
  const auto strip = [](int64_t rows) {
    return plan_product_tiles({1, rows, 768, 768, 1, false, false}, 64);
  };
  EXPECT_TRUE(are_far_rows(strip(100), 4096));
  EXPECT_TRUE(are_far_rows(strip(100), 3 * 4096));
  EXPECT_FALSE(are_far_rows(strip(100), 4096 + 64));
  EXPECT_FALSE(are_far_rows(strip(4), 4096));
}

TEST(ProductTiles, AMatrixUnitTakesStripsOfTwoTilesAndTheRest) {
  const auto tiles = [](int64_t rows, int64_t factors) {
    ProductSize size{1, rows, 768, factors};
    size.matrix_unit = true;
    return plan_product_tiles(size, 64);
  };
  EXPECT_EQ(tiles(4, 384).form, ProductTiles::Form::kPacked);
  for (int64_t rows : {5, 16, 17, 31, 32, 33, 64, 197, 1000}) {
    const ProductTiles t = tiles(rows, 384);
    EXPECT_EQ(t.form, ProductTiles::Form::kTiles);
    EXPECT_LE(t.strip_rows, 32);
    EXPECT_LE(t.strips - t.tall_strips, 1) << "one is lower";
    EXPECT_EQ(t.tall_strips * t.strip_rows + (t.strips - t.tall_strips) * t.low_rows, rows);
    EXPECT_EQ(t.panel(), 32);
  }
  for (int64_t factors : {17, 192, 200, 500, 4000}) {
    const ProductTiles t = tiles(100, factors);
    EXPECT_TRUE(t.factors == factors || t.factors % 16 == 0) << "whole tiles";
  }
  EXPECT_FALSE(are_far_rows(tiles(100, 2048), 4096)) << "lines are read whole, once";
  EXPECT_EQ(tiles(56, 384).strip_rows, 28) << "one height";
  EXPECT_EQ(tiles(56, 384).tall_strips, 2);
  EXPECT_EQ(tiles(1024, 384).row_blocks(), 32) << "a strip stays in the first cache";
}

// Threads can share out what is worth it.
TEST(ProductTiles, MakeItemsForThreads) {
  const ProductSize size{1, 256, 256, 256, 1, true, false};
  const ProductTiles t = plan_product_tiles(size, 32);
  EXPECT_GE(column_blocks(size, t) * t.row_blocks(), 8);
  const ProductSize small{1, 16, 16, 16, 1, true, false};
  const ProductTiles one = plan_product_tiles(small, 32);
  EXPECT_EQ(column_blocks(small, one) * one.row_blocks(), 1);
}

}  // namespace
}  // namespace litz
