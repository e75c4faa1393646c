#include "codegen/cpp/product_tiles.h"

#include <algorithm>
#include <numeric>

#include "codegen/cpp/prelude.h"

namespace litz {
namespace {

constexpr int64_t kFactors = 192;      // of a step, at most: one term after the other is added up
constexpr int64_t kDotFactors = 1536;  // ... in each lane one of so many
constexpr int64_t kTileFactors = 512;  // of a matrix unit
constexpr int64_t kLineFactors = 16;
constexpr int64_t kBlockRows = 96;     // the left operand's rows of a step stay in the second cache
constexpr int64_t kMostColumns = 128;  // ... and the block itself
constexpr int64_t kPackedElements = 192 * 1024;  // of a block, on the stack
// Matrix units are as fast as what they read comes. A strip of many columns stays in the first
// cache until it is stored; the panels come from the second one, of 2 MiB on CPUs that have such a
// unit.
constexpr int64_t kMostTileColumns = 512;
constexpr int64_t kPackedTileElements = 256 * 1024;
constexpr int64_t kFewestColumns = 64;
constexpr int64_t kMostDotRows = 24;  // with more of them packing is faster
constexpr int64_t kFewestDotFactors = 64;
constexpr int64_t kEnoughItems = 16;      // for threads to share them out evenly
constexpr int64_t kCacheWayBytes = 4096;  // of the first level cache, which has eight ways or more
constexpr int64_t kFarRows = 6;           // that leave some of the ways to the right operand
constexpr int64_t kFewestTileRows = 5;    // for which a matrix unit pays
// Rows so far apart lie in pages of their own, or nearly so: what a processor brings by itself ends
// with the page.
constexpr int64_t kFarRowBytes = 2048;
constexpr int64_t kRowsAhead = 8;
// Of the tiles that bring a later step's operands: with half the lanes a step takes twice as long
// for the same bytes, and its loop has no room for more: there bringing costs what it gains.
constexpr int kNextLanes = 16;
// An operand of so many bytes does not stay in the second level cache next to the panels, and the
// third one has the bandwidth for what a step reads, but takes a hundred cycles and more.
constexpr int64_t kManyBytes = 512 * 1024;
constexpr int64_t kFewestNextFactors = 32;
constexpr double kItemNanoseconds = 20000;

using Form = ProductTiles::Form;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

void choose_form(const ProductSize& size, int vector_bytes, ProductTiles& tiles) {
  const int64_t sums = most_sums(vector_bytes);
  if (size.matrix_unit && size.rows >= kFewestTileRows) {
    tiles.form = Form::kTiles;
    tiles.vectors = 2;
    // Strips of one height, if there can be as few: of another one, tiles are configured anew.
    tiles.strips = ceil_div(size.rows, 2 * kTileRows);
    tiles.strip_rows =
        size.rows % tiles.strips == 0 ? size.rows / tiles.strips : int64_t{2 * kTileRows};
    tiles.tall_strips = size.rows / tiles.strip_rows;
    tiles.low_rows = size.rows % tiles.strip_rows;
    return;
  }
  tiles.form = Form::kPacked;
  tiles.vectors = size.columns <= tiles.lanes && !size.in_panels ? 1 : 2;
  int64_t rows = sums / tiles.vectors - (tiles.vectors == 1 ? 2 : 0);
  if (size.has_dots && size.rows <= kMostDotRows && size.factors >= kFewestDotFactors) {
    tiles.form = Form::kDots;
    rows = std::min<int64_t>(4, size.rows);
    tiles.vectors = static_cast<int>(std::min(size.columns, std::min<int64_t>(6, sums / rows)));
  } else if (size.has_rows && size.rows <= sums / 2) {
    // A panel is whole, so that nothing behind the last row is read.
    for (int vectors : {4, 2}) {
      if (size.columns % (tiles.lanes * vectors) != 0 || size.rows * vectors > sums) continue;
      tiles.form = Form::kInPlace;
      tiles.vectors = vectors;
      rows = size.rows;
      break;
    }
  }
  tiles.strips = ceil_div(size.rows, rows);
  tiles.strip_rows = ceil_div(size.rows, tiles.strips);
  tiles.low_rows = tiles.strip_rows - 1;
  tiles.tall_strips = size.rows - tiles.strips * tiles.low_rows;
}

}  // namespace

int64_t most_sums(int vector_bytes) { return vector_bytes == 64 ? 28 : 12; }

int64_t column_blocks(const ProductSize& size, const ProductTiles& tiles) {
  return ceil_div(size.columns, tiles.block_columns);
}

int64_t batches_of_item(const ProductSize& size, const ProductTiles& tiles, int64_t extent) {
  if (!tiles.packs() || tiles.row_blocks() > 1) return 1;
  const int64_t blocks = column_blocks(size, tiles) * (size.batches / extent);
  const auto evenly = [&](int64_t batches) { return ceil_div(extent, ceil_div(extent, batches)); };
  int64_t batches = evenly(std::max<int64_t>(1, std::min(extent, kBlockRows / size.rows)));
  while (batches > 1 && blocks * ceil_div(extent, batches) < kEnoughItems &&
         item_nanoseconds(size, tiles) * static_cast<double>(batches) > 2 * kItemNanoseconds)
    batches = evenly(batches - 1);
  return batches;
}

bool are_far_rows(const ProductTiles& tiles, int64_t bytes) {
  return tiles.form != Form::kTiles && bytes % kCacheWayBytes == 0 && tiles.strip_rows > kFarRows;
}

int64_t rows_ahead(const ProductTiles& tiles, int64_t stride) {
  return tiles.form == Form::kInPlace && stride * 4 >= kFarRowBytes ? kRowsAhead : 0;
}

int64_t next_rows(const ProductSize& size, const ProductTiles& tiles) {
  if (tiles.form != Form::kPacked || tiles.lanes < kNextLanes || size.in_panels || size.parts > 1 ||
      tiles.factors < kFewestNextFactors || size.rows * size.factors * 4 < kManyBytes)
    return 0;
  return ceil_div(tiles.strip_rows, ceil_div(tiles.block_columns, tiles.panel()));
}

bool brings_source(const ProductSize& size, const ProductTiles& tiles) {
  return tiles.form == Form::kPacked && tiles.lanes >= kNextLanes && size.has_rows &&
         size.parts == 1 && tiles.factors >= kFewestNextFactors &&
         size.columns * size.factors * 4 >= kManyBytes;
}

double item_nanoseconds(const ProductSize& size, const ProductTiles& tiles) {
  // Of a multiply-add; with few rows the right operand is read from memory as fast as that.
  const double each = (tiles.form == Form::kTiles ? 0.05 : 0.2) / tiles.lanes;
  const int64_t columns = std::min(size.columns, tiles.block_columns);
  const int64_t rows = std::max<int64_t>(8, std::min(size.rows, tiles.block_rows()));
  return each * static_cast<double>(rows * columns) *
         static_cast<double>(size.factors * size.parts);
}

ProductTiles plan_product_tiles(const ProductSize& size, int vector_bytes) {
  ProductTiles tiles;
  tiles.lanes = vector_bytes / 4;
  choose_form(size, vector_bytes, tiles);
  const bool of_unit = tiles.form == Form::kTiles;
  const int64_t most_columns = of_unit ? kMostTileColumns : kMostColumns;
  const int64_t most_factors = of_unit                     ? kTileFactors
                               : tiles.form == Form::kDots ? kDotFactors
                                                           : kFactors;
  tiles.factors = ceil_div(size.factors, ceil_div(size.factors, most_factors));
  // Whole lines of the caches.
  if (tiles.factors < size.factors)
    tiles.factors = ceil_div(tiles.factors, kLineFactors) * kLineFactors;

  // Whole panels and whole vectors.
  const int64_t unit = std::lcm(tiles.panel(), int64_t{tiles.lanes});
  const int64_t units = ceil_div(size.columns, unit);
  const auto set_columns = [&](int64_t wanted) {
    const int64_t blocks = ceil_div(units, std::max<int64_t>(1, wanted / unit));
    tiles.block_columns = ceil_div(units, blocks) * unit;
  };
  const auto set_strips = [&](int64_t wanted) {
    const int64_t row_blocks = ceil_div(tiles.strips, std::max<int64_t>(1, wanted));
    tiles.block_strips = ceil_div(tiles.strips, row_blocks);
  };
  const int64_t packed =
      (of_unit ? kPackedTileElements : kPackedElements) / (size.factors * size.parts);
  const auto limit_columns = [&] {
    // Of one block of rows the columns are packed for each step.
    const bool packs_all =
        tiles.packs() && !size.in_panels && (size.batches > 1 || tiles.row_blocks() > 1);
    return packs_all ? std::min(packed, most_columns) : most_columns;
  };
  set_strips(of_unit && !size.along_rows ? 1 : kBlockRows / tiles.strip_rows);
  set_columns(limit_columns());
  const auto wants_more = [&] {
    return size.batches * column_blocks(size, tiles) * tiles.row_blocks() < kEnoughItems &&
           item_nanoseconds(size, tiles) > 2 * kItemNanoseconds;
  };
  while (wants_more() && tiles.block_columns > kFewestColumns) set_columns(tiles.block_columns / 2);
  while (wants_more() && tiles.block_strips > 2) {
    set_strips(ceil_div(tiles.block_strips, 2));
    set_columns(std::min(tiles.block_columns, limit_columns()));
  }
  return tiles;
}

}  // namespace litz
