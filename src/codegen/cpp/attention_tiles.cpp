#include "codegen/cpp/attention_tiles.h"

#include <algorithm>

#include "codegen/cpp/prelude.h"
#include "codegen/cpp/product_tiles.h"

namespace litz {
namespace {

constexpr int64_t kKeys = 384;                   // of a step
constexpr int64_t kUnsharedKeys = 256;           // ... that is packed by itself
constexpr int64_t kPackedElements = 192 * 1024;  // of a batch, on the stack
constexpr int64_t kFewQueries = 6;
constexpr int64_t kFewTileQueries = 1;  // ... of a matrix unit
constexpr int64_t kStrips = 4;
constexpr int64_t kUnsharedStrips = 12;
constexpr int64_t kTallStrips = 2;  // of a matrix unit
constexpr int64_t kUnsharedTallStrips = 6;
constexpr double kEnoughItems = 16;  // for threads to share them out evenly

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

int64_t most_tile_rows(int vector_bytes) { return most_sums(vector_bytes) / 2; }

AttentionTiles plan_attention_tiles(const AttentionSize& size, int vector_bytes) {
  AttentionTiles tiles;
  tiles.lanes = vector_bytes / 4;
  const int64_t together = size.rows > 0 ? size.rows : size.queries;
  const int64_t few_queries = size.matrix_unit ? kFewTileQueries : kFewQueries;
  tiles.in_place = together > 0 && together <= few_queries && size.is_in_order &&
                   size.features % tiles.lanes == 0;
  tiles.matrix_unit = size.matrix_unit && !tiles.in_place;
  tiles.strip_rows = tiles.matrix_unit ? 2 * kTileRows : most_tile_rows(vector_bytes);
  tiles.ends_short = size.queries == 0;
  if (size.rows > 0) {
    tiles.strip_rows = size.rows;
    tiles.strips = tiles.tall_strips = size.queries / size.rows;
  } else if (size.queries > 0) {
    tiles.strips = ceil_div(size.queries, tiles.strip_rows);
    tiles.strip_rows = ceil_div(size.queries, tiles.strips);
    tiles.tall_strips =
        tiles.matrix_unit ? tiles.strips : size.queries - tiles.strips * (tiles.strip_rows - 1);
    tiles.ends_short = tiles.matrix_unit && tiles.strips * tiles.strip_rows > size.queries;
  }
  const int64_t panel = tiles.panel();
  const auto whole = [&](int64_t n) { return ceil_div(n, panel) * panel; };
  const int64_t packed =
      whole(size.keys) * (size.factors + whole(size.features)) / (size.pairs ? 2 : 1);
  tiles.packs_all =
      !tiles.in_place && size.keys > 0 && size.is_in_order && packed <= kPackedElements;
  const int64_t most = tiles.packs_all || tiles.in_place ? kKeys : kUnsharedKeys;
  tiles.keys = size.keys > 0 ? whole(ceil_div(size.keys, ceil_div(size.keys, most))) : most;

  const int64_t few = tiles.matrix_unit ? kTallStrips : kStrips;
  const int64_t many = tiles.matrix_unit ? kUnsharedTallStrips : kUnsharedStrips;
  tiles.block_strips = size.rows > 0 ? 1 : tiles.packs_all ? few : many;
  if (tiles.strips > 0) {
    const auto blocks = [&] { return ceil_div(tiles.strips, tiles.block_strips); };
    while (tiles.block_strips > 1 && size.items * static_cast<double>(blocks()) < kEnoughItems)
      --tiles.block_strips;
    tiles.block_strips = ceil_div(tiles.strips, blocks());
  }
  return tiles;
}

double attention_nanoseconds(const AttentionSize& size, const AttentionTiles& tiles) {
  constexpr double kMultiplyAdd = 0.3;
  constexpr double kExponential = 20;  // multiply-adds
  const double at_once = tiles.matrix_unit ? 8 : 1;
  return kMultiplyAdd / tiles.lanes *
         (static_cast<double>(size.factors + size.features) / at_once + kExponential);
}

}  // namespace litz
