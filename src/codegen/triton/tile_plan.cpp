#include "codegen/triton/tile_plan.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "codegen/common/iteration_space.h"
#include "schedule/expr_cost.h"

namespace litz {
namespace {

constexpr int64_t kStretchBytes = 4096;  // of a buffer that a pointwise program reads
constexpr int64_t kFewPrograms = 264;    // that leave multiprocessors idle
constexpr int kSquare = 64;              // edge of a square
constexpr int kColumnWidth = 64;         // rows of a tile whose rows are neighbours in memory
constexpr int64_t kTile = 4096;          // elements of a tile with inner loops
constexpr int64_t kColumnTile = 2048;    // ... of one whose rows are neighbours in memory
constexpr int64_t kOnlineTile =
    2048;  // ... of one with online sums, which wait for each other's maximum
constexpr int64_t kPersistent = 16384;     // ... of one that holds whole rows
constexpr int kWarpElements = 32 * 16;     // that one warp takes
constexpr int kLoneWarpElements = 32 * 4;  // ... of a program beside which there are few others
constexpr int kMostWarps = 16;
constexpr int kSpreadRow = 4096;            // a row of so many words has twice as many warps
constexpr int kCheapWork = 6;               // of an operation that is no function
constexpr int64_t kColumnPrograms = 264;    // of 8 warps that sum up columns: two a multiprocessor
constexpr int64_t kColumnRows = 2048;       // fewer rows are not enough for them
constexpr int64_t kColumnElements = 24576;  // of a row and its sums, which stay in registers
constexpr int64_t kTilesAhead = 2;          // that are on their way while one is worked on
// Of shared memory: for each of their warps, so that all are at work at once, and what all devices
// have.
constexpr int64_t kColumnBytes = 12800;
constexpr int64_t kSharedBytes = 80 * 1024;
constexpr int64_t kFinishStep = 256;  // least iterations of a part of a row, times its rows

int warps_for(int64_t elements, int most) {
  return std::clamp(power_of_two(elements / kWarpElements), 1, most);
}

int64_t product(const KernelAnalysis& analysis, size_t from, size_t to, bool* known) {
  int64_t total = 1;
  for (size_t i = from; i < to; ++i) {
    const Index e = analysis.extent(i);
    if (!e.is_constant()) {
      *known = false;
      return int64_t{1} << 20;
    }
    total *= std::max<int64_t>(e.constant(), 1);
    total = std::min<int64_t>(total, int64_t{1} << 40);
  }
  return total;
}

// All elements in memory have four bytes or more.
bool has_words_only(KernelAnalysis& analysis, const Program& program) {
  bool words = true;
  for_each_access(analysis, program,
                  [&](Index, int64_t bytes, bool) { words = words && bytes >= 4; });
  return words;
}

void plan_pointwise(KernelAnalysis& analysis, const Program& program, bool among_others,
                    TilePlan& plan) {
  const size_t outer = analysis.num_loops();
  TurnedLoads turned = find_turned_loads(analysis, 16);
  if (!turned.loads.empty()) {
    const auto edge = [&](size_t loop) {
      const Index e = analysis.extent(loop);
      return e.is_constant() ? std::min(kSquare, power_of_two(e.constant())) : kSquare / 2;
    };
    plan.turned_loop = turned.loop;
    plan.rows = edge(turned.loop);
    plan.columns = edge(outer - 1);
    plan.warps = warps_for(int64_t{plan.rows} * plan.columns, 8);
    return;
  }
  bool known = true;
  const int64_t total = product(analysis, 0, outer, &known);
  int64_t smallest = 4;
  for_each_access(analysis, program, [&](Index, int64_t bytes, bool) {
    smallest = std::min(smallest, std::max<int64_t>(bytes, 2));
  });
  const int64_t stretch = kStretchBytes / smallest;
  // Kernels of any size share a function where they run at once.
  plan.rows =
      static_cast<int>(among_others ? stretch : std::min<int64_t>(stretch, power_of_two(total)));
  // Enough programs for all multiprocessors.
  while (!among_others && known && plan.rows > 256 && total / plan.rows < kFewPrograms)
    plan.rows /= 2;
  plan.warps = std::clamp(static_cast<int>(plan.rows * smallest / 1024), 1, 4);
}

bool is_over_outer(const KernelReduction& r) { return r.over_outer; }

// Calls act(load) for what each row has elements of its own of.
template <class Act>
void for_each_row_load(KernelAnalysis& analysis, const Act& act) {
  visit_postorder(analysis.all_roots(), [&](Expr e) {
    if (e.op() == ExprOp::kLoad && analysis.is_of_rows(e)) act(e);
  });
}

// Bytes of a tile that are loaded anew for each.
int64_t bytes_of_tile(KernelAnalysis& analysis, const TilePlan& plan) {
  int64_t bytes = 0;
  for_each_row_load(analysis, [&](Expr load) { bytes += size_of(load.dtype()); });
  return bytes * plan.rows * plan.columns;
}

// Rows of words of which each has one operand. On an H200 twice the warps are 2 % faster for those
// of 4096, and 7 % slower where there are two operands.
bool has_one_row(KernelAnalysis& analysis, const Program& program) {
  int64_t loads = 0;
  for_each_row_load(analysis, [&](Expr) { ++loads; });
  return loads == 1 && has_words_only(analysis, program);
}

// Whether the row had better be read from the cache again for the next pass than kept in registers:
// what is read last makes room for what is stored (3 % of a layer norm of 4096 on an H200), unless
// a pass has much to compute again.
bool had_better_read_again(KernelAnalysis& analysis, const Program& program, int64_t iterations) {
  const Kernel& kernel = analysis.kernel();
  if (iterations != kTile || kernel.num_stages < 2) return false;
  bool cheap = std::none_of(kernel.reductions.begin(), kernel.reductions.end(),
                            [](const KernelReduction& r) { return r.running; });
  visit_postorder(analysis.all_roots(), [&](Expr e) {
    const bool again = (analysis.depends(e) & analysis.inner_mask()) != 0;
    cheap = cheap && (!again || operation_work(e.op()) <= kCheapWork);
  });
  return cheap && has_one_row(analysis, program);
}

// The registers of a multiprocessor, 128 for a thread, are enough for all programs to be at work at
// once. They are few, so that the next tile is loaded while one is worked on.
void plan_column_sums(KernelAnalysis& analysis, int64_t rows, int64_t iterations, TilePlan& plan) {
  plan.persistent = true;
  plan.columns = power_of_two(iterations);
  plan.rows =
      static_cast<int>(std::clamp<int64_t>(kTile / 2 / plan.columns, 1, power_of_two(rows)));
  while (plan.rows > 1 && rows / plan.rows < kColumnPrograms) plan.rows /= 2;
  // More than two sums leave the less room for the elements of a row.
  const auto sums = std::count_if(analysis.kernel().reductions.begin(),
                                  analysis.kernel().reductions.end(), is_over_outer);
  plan.warps =
      warps_for(int64_t{plan.rows} * plan.columns * std::max<int64_t>(1 + sums, 3) / 3, kMostWarps);
  const int64_t programs = kColumnPrograms * 8 / std::max(plan.warps, 4);
  const int64_t tiles = (rows + plan.rows - 1) / plan.rows;
  const int64_t most = std::min(kColumnBytes * plan.warps, kSharedBytes);
  const int64_t ahead = most / std::max<int64_t>(bytes_of_tile(analysis, plan), 1);
  plan.stages = 1 + static_cast<int>(std::min<int64_t>(ahead, kTilesAhead));
  plan.rows_of_program = (tiles + programs - 1) / programs * plan.rows;
}

}  // namespace

ColumnSumLimits triton_column_sums() { return {kColumnElements, kColumnPrograms, kColumnRows}; }

int power_of_two(int64_t value) {
  const uint64_t least = static_cast<uint64_t>(std::clamp<int64_t>(value, 1, int64_t{1} << 30));
  return static_cast<int>(std::bit_ceil(least));
}

TilePlan plan_tile(KernelAnalysis& analysis, const Program& program, bool among_others) {
  const Kernel& kernel = analysis.kernel();
  TilePlan plan;
  plan.narrow = fits_32_bits(analysis, program);
  if (kernel.inner.empty()) {
    plan_pointwise(analysis, program, among_others, plan);
    return plan;
  }
  bool known = true;
  bool rows_known = true;
  const int64_t iterations = inner_iterations(analysis);
  product(analysis, kernel.outer.size(), analysis.num_loops(), &known);
  const int64_t rows = product(analysis, 0, kernel.outer.size(), &rows_known);
  if (std::any_of(kernel.reductions.begin(), kernel.reductions.end(), is_over_outer)) {
    plan_column_sums(analysis, rows, iterations, plan);
    return plan;
  }
  // Checks in front of a loop have to know that it has iterations.
  for (const KernelLoop& loop : kernel.inner) known = known && loop.extent.range().lo >= 1;
  const bool by_columns = walks_columns(analysis, program, kColumnWidth / 4);
  const int64_t most_rows = std::min<int64_t>(power_of_two(rows), int64_t{1} << 10);

  SplitLimits limits;
  if (by_columns) {
    plan.rows = static_cast<int>(std::min<int64_t>(most_rows, kColumnWidth));
    // Few programs: what counts is how much each of them does.
    if (rows_known && rows / kColumnWidth < kFewPrograms / 8) limits.long_row /= plan.rows;
    const bool splits = split_rows(analysis, kColumnWidth, iterations, kTile, limits) > 1;
    if (!splits && rows_known && plan.rows == kColumnWidth && rows / plan.rows < kFewPrograms)
      plan.rows /= 2;
  } else {
    plan.rows =
        static_cast<int>(std::clamp<int64_t>(kTile / 2 / power_of_two(iterations), 1, most_rows));
    if (rows_known) {
      // All multiprocessors have something to do.
      while (plan.rows > 1 && rows / plan.rows < kFewPrograms) plan.rows /= 2;
    }
  }
  plan.splits = split_rows(analysis, plan.rows, iterations,
                           std::max<int64_t>(kTile / plan.rows, kFinishStep / plan.rows), limits);
  const bool online = std::any_of(kernel.reductions.begin(), kernel.reductions.end(),
                                  [](const KernelReduction& r) { return r.online.has_value(); });
  int most_warps = kMostWarps;
  const int64_t whole = int64_t{plan.rows} * power_of_two(iterations);
  if (plan.splits == 1 && known && whole <= kPersistent &&
      !had_better_read_again(analysis, program, iterations)) {
    plan.persistent = true;
    plan.columns = power_of_two(iterations);
  } else {
    const int64_t length = (iterations + plan.splits - 1) / plan.splits;
    // Few programs have more in flight each. Rows that are read more than once are few at a time,
    // so that they are still in the cache.
    const bool few = plan.splits == 1 && ((rows_known && rows / plan.rows < kFewPrograms) ||
                                          (kernel.num_stages > 1 && whole > kPersistent));
    const int64_t tile = few          ? kPersistent
                         : online     ? kOnlineTile
                         : by_columns ? kColumnTile
                                      : kTile;
    plan.columns = static_cast<int>(
        std::clamp<int64_t>(tile / plan.rows, 1, known ? power_of_two(length) : kTile));
    if (few) most_warps = 2 * kMostWarps;
    if (plan.splits > 1) {
      const int64_t unit = int64_t{plan.splits} * plan.columns;
      plan.stretch = (iterations + unit - 1) / unit * plan.columns;
      plan.splits = static_cast<int>((iterations + plan.stretch - 1) / plan.stretch);
      plan.narrow = plan.narrow && iterations + plan.stretch < std::numeric_limits<int32_t>::max();
    }
  }
  const bool spread = online || (plan.columns >= kSpreadRow && whole <= kPersistent &&
                                 plan.splits == 1 && has_one_row(analysis, program));
  plan.warps = warps_for(int64_t{plan.rows} * plan.columns * (spread ? 2 : 1), most_warps);
  // Programs that have a multiprocessor to themselves take all of it that they can use.
  if (plan.persistent && plan.rows == 1 && rows_known && rows < kFewPrograms)
    plan.warps = std::clamp(plan.columns / kLoneWarpElements, plan.warps, most_warps);
  return plan;
}

}  // namespace litz
