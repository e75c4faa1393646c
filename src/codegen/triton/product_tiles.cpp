#include "codegen/triton/product_tiles.h"

#include <algorithm>
#include <array>

#include "codegen/triton/tile_plan.h"

namespace litz {
namespace {

constexpr int64_t kSharedBytes = 228 * 1024;  // of a multiprocessor
constexpr int64_t kReservedBytes = 1024;      // of it, for each program
constexpr int64_t kSmallTile = 64 * 64;
constexpr int64_t kLeastSplitFactors = 1024;  // of a product that is split
constexpr int64_t kLeastPartFactors = 256;    // of each part
constexpr int64_t kMostPartials = 256;        // of one element
constexpr int64_t kMostElements = 1 << 28;    // of partial sums
constexpr int kSplitStages = 3;
constexpr int kLeastRows = 16;  // of an operand of tl.dot

struct Extents {
  int64_t batches = 1;
  int64_t rows = 1;
  int64_t columns = 1;
  int64_t factors = 1;
};

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

Extents extents_of(const Kernel& kernel) {
  const size_t m = kernel.outer.size() - 2;
  Extents e{1, kernel.outer[m].extent.constant(), kernel.outer[m + 1].extent.constant(),
            kernel.inner[0].extent.constant()};
  for (size_t i = 0; i < m; ++i) e.batches *= kernel.outer[i].extent.constant();
  return e;
}

int64_t tiles_of(const Extents& e, const ProductTile& tile) {
  return e.batches * ceil_div(e.rows, tile.rows) * ceil_div(e.columns, tile.columns);
}

// Parts of which each is some whole steps of the loop over factors, and none is empty.
int whole_parts(const Extents& e, const ProductTile& tile, int64_t parts) {
  const int64_t each = stretch_of(e.factors, static_cast<int>(parts), tile.factors);
  return static_cast<int>(ceil_div(e.factors, each));
}

// Where few tiles would leave multiprocessors idle, several programs share the factors of a tile,
// unless their partial sums are more memory than the operands.
int plan_splits(const Extents& e, ProductTile tile, const TritonDevice& device) {
  tile.splits = 2;
  const int64_t tiles = tiles_of(e, tile);
  if (2 * tiles > device.multiprocessors || e.factors < kLeastSplitFactors) return 1;
  const int64_t elements = e.batches * e.rows * e.columns;
  const int64_t operands = e.batches * (e.rows + e.columns) * e.factors;
  const int64_t parts =
      std::min({resident_programs(tile, device) / tiles, e.factors / kLeastPartFactors,
                operands / (4 * elements), kMostElements / elements, kMostPartials});
  return parts < 2 ? 1 : whole_parts(e, tile, parts);
}

// The tile with as many parts as there should be, and so few stages that more programs are at work.
ProductTile with_splits(const Extents& e, ProductTile tile, const TritonDevice& device) {
  tile.splits = plan_splits(e, tile, device);
  if (tile.splits == 1 || tile.stages <= kSplitStages) return tile;
  ProductTile lean = tile;
  lean.stages = kSplitStages;
  if (resident_programs(lean, device) > resident_programs(tile, device)) {
    lean.splits = plan_splits(e, lean, device);
    return lean;
  }
  return tile;
}

}  // namespace

int64_t stretch_of(int64_t factors, int splits, int step) {
  return ceil_div(ceil_div(factors, splits), step) * step;
}

int64_t resident_programs(const ProductTile& tile, const TritonDevice& device) {
  // On its way to memory a result passes through shared memory, sums in float32, halves in parts.
  const int64_t operands = int64_t{tile.stages} * tile.factors * (tile.rows + tile.columns) * 2;
  const int64_t results = int64_t{tile.rows} * tile.columns * (tile.splits > 1 ? 4 : 1);
  const int64_t bytes = operands + results + kReservedBytes;
  const int64_t most = tile.warps > 4 ? 1 : tile.rows * tile.columns <= kSmallTile ? 4 : 2;
  return device.multiprocessors * std::clamp<int64_t>(kSharedBytes / bytes, 1, most);
}

ProductTile plan_product(const Kernel& kernel, const TritonDevice& device) {
  const Extents e = extents_of(kernel);
  ProductTile tile;
  tile.rows = std::clamp(power_of_two(e.rows), kLeastRows, 128);
  tile.columns = std::clamp(power_of_two(e.columns), 2 * kLeastRows, 128);
  // Enough tiles for all multiprocessors.
  if (tile.rows == 128 && tiles_of(e, tile) < device.multiprocessors) tile.rows = 64;
  if (tile.rows < 128) tile.stages = 4;
  // Of few rows the other operand is what takes the time: more of it on its way.
  if (tile.rows < 64) {
    tile.columns = std::min(tile.columns, 64);
    tile.factors = 128;
  }
  tile.factors = std::min(tile.factors, power_of_two(e.factors));
  return with_splits(e, tile, device);
}

std::vector<ProductTile> other_product_tiles(const Kernel& kernel, const TritonDevice& device) {
  constexpr std::array<ProductTile, 12> kTiles = {{{128, 128, 64, 4, 3},
                                                   {128, 256, 64, 8, 3},
                                                   {128, 256, 64, 8, 4},
                                                   {128, 128, 64, 8, 4},
                                                   {64, 128, 64, 4, 4},
                                                   {128, 64, 64, 4, 4},
                                                   {64, 64, 64, 4, 4},
                                                   {64, 64, 128, 4, 3},
                                                   {32, 64, 128, 4, 4},
                                                   {32, 128, 64, 4, 4},
                                                   {16, 64, 128, 4, 4},
                                                   {16, 128, 128, 4, 3}}};
  const Extents e = extents_of(kernel);
  const ProductTile planned = plan_product(kernel, device);
  std::vector<ProductTile> others;
  const auto add = [&](const ProductTile& tile) {
    if (tile == planned || std::find(others.begin(), others.end(), tile) != others.end()) return;
    others.push_back(tile);
  };
  for (ProductTile tile : kTiles) {
    // Neither mostly past the ends nor much smaller than need be.
    const int rows = std::clamp(power_of_two(e.rows), kLeastRows, 128);
    if (tile.rows > rows || (tile.rows < 64 && tile.rows < rows)) continue;
    if (tile.columns > power_of_two(e.columns) || tile.factors > power_of_two(e.factors)) continue;
    if (tile.rows == 64 && tile.columns == 64 &&
        2 * tiles_of(e, planned) > device.multiprocessors && e.columns > 64)
      continue;
    add(with_splits(e, tile, device));
  }
  if (planned.splits > 1) {
    for (const int64_t parts : {planned.splits / 2, planned.splits * 2}) {
      ProductTile tile = planned;
      if (parts * kLeastPartFactors / 2 > e.factors) continue;
      tile.splits = parts < 2 ? 1 : whole_parts(e, tile, parts);
      add(tile);
    }
  }
  return others;
}

std::string to_string(const ProductTile& tile) {
  return std::to_string(tile.rows) + " by " + std::to_string(tile.columns) + ", " +
         std::to_string(tile.factors) + " factors, " +
         (tile.splits > 1 ? std::to_string(tile.splits) + " parts, " : "") +
         std::to_string(tile.stages) + " stages, " + std::to_string(tile.warps) + " warps";
}

}  // namespace litz
