#include "codegen/cpp/product_tiles.h"

#include <algorithm>

namespace litz {
namespace {

constexpr int64_t kFactors = 192;     // of a step, at most
constexpr int64_t kBlockRows = 96;    // the left operand's rows of a step stay in the second cache
constexpr int64_t kMostColumns = 128;  // ... and the block itself
constexpr int64_t kPackedElements = 192 * 1024;  // of a block, on the stack
constexpr int64_t kFewestColumns = 64;
constexpr int64_t kEnoughItems = 16;  // for threads to share them out evenly
constexpr double kItemNanoseconds = 20000;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Rows of a register tile: all but a few registers are accumulators.
int64_t most_rows(int vector_bytes, int vectors) {
  if (vector_bytes == 64) return vectors == 2 ? 14 : 24;
  return vectors == 2 ? 6 : 12;
}

}  // namespace

int64_t column_blocks(const ProductSize& size, const ProductTiles& tiles) {
  return ceil_div(size.columns, tiles.block_columns);
}

double item_nanoseconds(const ProductSize& size, const ProductTiles& tiles) {
  const double each = 0.2 / tiles.lanes;  // of a multiply-add
  const int64_t columns = std::min(size.columns, tiles.block_columns);
  const int64_t rows = std::min(size.rows, tiles.block_rows());
  return each * static_cast<double>(rows * columns) * static_cast<double>(size.factors);
}

ProductTiles plan_product_tiles(const ProductSize& size, int vector_bytes) {
  ProductTiles tiles;
  tiles.lanes = vector_bytes / 4;
  tiles.vectors = size.columns <= tiles.lanes ? 1 : 2;
  const int64_t panel = tiles.panel();
  const int64_t panels = ceil_div(size.columns, panel);

  tiles.strips = ceil_div(size.rows, most_rows(vector_bytes, tiles.vectors));
  tiles.strip_rows = ceil_div(size.rows, tiles.strips);
  tiles.tall_strips = size.rows - tiles.strips * (tiles.strip_rows - 1);
  tiles.factors = ceil_div(size.factors, ceil_div(size.factors, kFactors));

  int64_t blocks = 1;
  const auto set_columns = [&](int64_t wanted) {
    blocks = ceil_div(panels, std::max<int64_t>(1, wanted / panel));
    tiles.block_columns = ceil_div(panels, blocks) * panel;
  };
  const auto set_strips = [&](int64_t wanted) {
    const int64_t row_blocks = ceil_div(tiles.strips, std::max<int64_t>(1, wanted));
    tiles.block_strips = ceil_div(tiles.strips, row_blocks);
  };
  set_columns(std::min(kPackedElements / size.factors, kMostColumns));
  set_strips(kBlockRows / tiles.strip_rows);
  const auto wants_more = [&] {
    return size.batches * column_blocks(size, tiles) * tiles.row_blocks() < kEnoughItems &&
           item_nanoseconds(size, tiles) > 2 * kItemNanoseconds;
  };
  while (wants_more() && tiles.block_columns > kFewestColumns) set_columns(tiles.block_columns / 2);
  while (wants_more() && tiles.block_strips > 2) set_strips(ceil_div(tiles.block_strips, 2));
  return tiles;
}

}  // namespace litz
