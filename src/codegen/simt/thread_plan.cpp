#include "codegen/simt/thread_plan.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "codegen/common/iteration_space.h"
#include "codegen/cpp/cpp_body.h"

namespace litz {
namespace {

// Lanes that all accesses allow along the loop: its neighbours are neighbours in memory everywhere,
// or the same element.
int lanes_along(KernelAnalysis& analysis, const Program& program, size_t loop,
                const ThreadHeuristics& heuristics) {
  const Kernel& kernel = analysis.kernel();
  if (kernel.sequential) return 1;
  for (const KernelStore& store : kernel.stores) {
    if (store.mode != StoreMode::kStore) return 1;
  }
  for (const KernelReduction& reduction : kernel.reductions) {
    if (reduction.running || reduction.position.valid()) return 1;
  }
  int64_t smallest = 8;
  bool possible = true;
  bool any = false;
  for_each_access(analysis, program, [&](Index offset, int64_t bytes, bool indirect) {
    const KernelAnalysis::Walk walk = analysis.walk(offset, loop);
    if (indirect) possible = possible && walk == KernelAnalysis::Walk::kStill;
    if (walk == KernelAnalysis::Walk::kStill) return;
    if (walk != KernelAnalysis::Walk::kContiguous) {
      possible = false;
      return;
    }
    any = true;
    smallest = std::min(smallest, bytes);
  });
  visit_postorder(analysis.all_roots(), [&](Expr e) {
    if (e.op() == ExprOp::kMasked || e.op() == ExprOp::kCheckIndex) possible = false;
  });
  if (!possible || !any) return 1;
  return static_cast<int>(
      std::clamp<int64_t>(heuristics.vector_bytes / smallest, 1, heuristics.most_lanes));
}

// The most lanes, up to these, that leave no tail.
int dividing(int lanes, Index length) {
  if (!length.is_constant()) return 1;
  while (lanes > 1 && length.constant() % lanes != 0) lanes /= 2;
  return lanes;
}

int64_t iterations_or_unknown(const KernelAnalysis& analysis, size_t first, size_t last) {
  int64_t total = 1;
  for (size_t i = first; i < last; ++i) {
    const Index extent = analysis.extent(i);
    if (!extent.is_constant()) return -1;
    total *= extent.constant();
  }
  return total;
}

int power_of_two(int64_t value) {
  return static_cast<int>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, value))));
}

// Vectors that each thread of a large group takes: fewer of each load where there are more loads of
// a row, as all may stay in registers.
int64_t turns_of(KernelAnalysis& analysis, const ThreadPlan& plan,
                 const ThreadHeuristics& heuristics) {
  int64_t loads = 0;
  visit_postorder(analysis.all_roots(), [&](Expr e) {
    if (e.op() == ExprOp::kLoad && analysis.is_of_rows(e)) ++loads;
  });
  return std::clamp<int64_t>(heuristics.kept_elements / (plan.lanes * std::max<int64_t>(loads, 1)),
                             1, heuristics.turns);
}

int splits_of(KernelAnalysis& analysis, const ThreadPlan& plan, int64_t iterations,
              const ThreadHeuristics& heuristics) {
  if (plan.group == 1) return 1;
  int64_t long_row = heuristics.long_row;
  const int64_t rows = iterations_or_unknown(analysis, 0, analysis.kernel().outer.size());
  // Few blocks: what counts is how much each of them does.
  if (plan.columns && rows / plan.groups < heuristics.few_blocks / 4 &&
      rows * iterations >= SplitLimits().much_work)
    long_row /= plan.groups;
  return split_rows(analysis, plan.groups, iterations,
                    int64_t{plan.group} * plan.lanes * heuristics.turns,
                    {long_row, heuristics.few_blocks, heuristics.many_blocks});
}

// So many threads in a block a backend may ask for.
constexpr int64_t kMostThreads = 4096;

void let_choose(const KernelAnalysis& analysis, const ThreadHeuristics& heuristics,
                ThreadPlan& plan) {
  if (!heuristics.choose) return;
  const Kernel& kernel = analysis.kernel();
  ThreadShape shape;
  shape.rows = iterations_or_unknown(analysis, 0, kernel.outer.size());
  shape.row_length = iterations_or_unknown(analysis, kernel.outer.size(), analysis.num_loops());
  shape.stages = static_cast<int>(kernel.num_stages);
  shape.reductions = static_cast<int>(kernel.reductions.size());
  const int before = plan.group;
  heuristics.choose(shape, plan);
  const bool valid =
      plan.group >= 1 && plan.groups >= 1 && std::has_single_bit(unsigned(plan.group)) &&
      std::has_single_bit(unsigned(plan.groups)) &&
      int64_t{plan.group} * plan.groups <= kMostThreads &&
      (plan.group == 1 || heuristics.local_memory) && (before > 1 || plan.group == 1);
  if (valid) return;
  plan.fault = "the backend chooses blocks of " + std::to_string(plan.groups) + " groups of " +
               std::to_string(plan.group) + " threads";
  plan.group = 1;
  plan.groups = 1;
}

void plan_column_sums(KernelAnalysis& analysis, const Program& program,
                      const ThreadHeuristics& heuristics, ThreadPlan& plan) {
  const int64_t length = inner_iterations(analysis);
  plan.vector_loop = analysis.num_loops() - 1;
  plan.lanes = dividing(lanes_along(analysis, program, plan.vector_loop, heuristics),
                        analysis.extent(plan.vector_loop));
  plan.group =
      std::clamp(power_of_two(length / std::max<int64_t>(heuristics.sum_elements, plan.lanes)),
                 std::min(heuristics.warp, heuristics.most_group), heuristics.most_group);
  plan.groups = 1;
  const int64_t step = int64_t{plan.group} * plan.lanes;
  plan.turns = static_cast<int>((length + step - 1) / step);
  const int64_t rows = iterations_or_unknown(analysis, 0, analysis.kernel().outer.size());
  plan.rows_of_block = (rows + heuristics.sum_blocks - 1) / heuristics.sum_blocks;
}

}  // namespace

ColumnSumLimits simt_column_sums() {
  // With fewer rows for each block two kernels are as fast.
  return {.elements = 16384, .programs = 2 * ThreadHeuristics().sum_blocks, .least_rows = 2048};
}

ThreadPlan plan_threads(KernelAnalysis& analysis, const Program& program,
                        const ThreadHeuristics& heuristics) {
  const Kernel& kernel = analysis.kernel();
  ThreadPlan plan;
  plan.groups = heuristics.block;
  plan.narrow = fits_32_bits(analysis, program);
  const bool running = std::any_of(kernel.reductions.begin(), kernel.reductions.end(),
                                   [](const KernelReduction& r) { return r.running; });
  if (kernel.inner.empty() || running) let_choose(analysis, heuristics, plan);
  if (kernel.inner.empty()) {
    // Reductions of one element each have a thread each.
    if (!kernel.outer.empty() && kernel.reductions.empty()) {
      plan.vector_loop = kernel.outer.size() - 1;
      plan.lanes = lanes_along(analysis, program, plan.vector_loop, heuristics);
      if (heuristics.local_memory && plan.groups % kTurnedEdge == 0 &&
          plan.groups <= kTurnedEdge * kTurnedEdge) {
        TurnedLoads turned = find_turned_loads(analysis, kTurnedEdge / 2);
        plan.turned_loads = std::move(turned.loads);
        plan.turned_loop = turned.loop;
      }
      // What a thread does besides its elements costs most where they are much work.
      const bool is_much =
          analysis.work(analysis.outer_roots(), analysis.outer_mask()).operations >=
          heuristics.much_work;
      if (is_much && plan.lanes > 1 && plan.turned_loads.empty() && !heuristics.choose &&
          plan.groups > 2 * heuristics.warp) {
        plan.lanes *= 2;
        plan.groups /= 2;
      }
      // A tail of its own only where it is the only loop.
      if (kernel.outer.size() > 1)
        plan.lanes = dividing(plan.lanes, analysis.extent(plan.vector_loop));
    }
    return plan;
  }
  if (running) return plan;

  if (std::any_of(kernel.reductions.begin(), kernel.reductions.end(),
                  [](const KernelReduction& r) { return r.over_outer; })) {
    plan_column_sums(analysis, program, heuristics, plan);
    return plan;
  }
  const int64_t iterations = inner_iterations(analysis);
  if (walks_columns(analysis, program, heuristics.column_width / 2)) {
    plan.columns = true;
    plan.groups = heuristics.column_width;
    plan.group = std::clamp(power_of_two(iterations / 8), 1, heuristics.most_column_group);
    if (plan.group < 4) plan.groups = heuristics.block / plan.group;
    let_choose(analysis, heuristics, plan);
    plan.splits = splits_of(analysis, plan, iterations, heuristics);
    return plan;
  }
  plan.vector_loop = analysis.num_loops() - 1;
  plan.lanes = lanes_along(analysis, program, plan.vector_loop, heuristics);
  // Rows whose length no vector divides begin at all kinds of addresses.
  if (kernel.inner.size() > 1 || !kernel.outer.empty())
    plan.lanes = dividing(plan.lanes, analysis.extent(plan.vector_loop));
  if (iterations <= heuristics.thread_row || heuristics.most_group == 1) {
    plan.lanes = 1;
  } else if (iterations <= heuristics.warp_row) {
    plan.group = std::min(heuristics.warp, heuristics.most_group);
  } else {
    plan.group = std::min(
        std::max(power_of_two(iterations / (plan.lanes * turns_of(analysis, plan, heuristics))),
                 2 * heuristics.warp),
        heuristics.most_group);
  }
  // Few rows have a block each, with a vector for each thread.
  const int64_t rows = iterations_or_unknown(analysis, 0, kernel.outer.size());
  const bool few = plan.group >= heuristics.warp && rows > 0 && rows < heuristics.few_blocks;
  if (few) {
    plan.group = std::clamp(power_of_two(iterations / plan.lanes), plan.group,
                            std::max(plan.group, heuristics.most_group));
  }
  plan.groups = std::max(1, heuristics.block / plan.group);
  if (plan.group > heuristics.warp || few) plan.groups = 1;
  let_choose(analysis, heuristics, plan);
  if (kernel.inner.size() == 1 && kernel.num_stages > 1 && plan.group > 1) {
    const Index length = analysis.extent(plan.vector_loop);
    const int64_t step = int64_t{plan.group} * plan.lanes;
    if (length.is_constant() && length.constant() % step == 0 &&
        length.constant() / step * plan.lanes <= heuristics.kept_elements)
      plan.turns = static_cast<int>(length.constant() / step);
  }
  plan.splits = splits_of(analysis, plan, iterations, heuristics);
  return plan;
}

ThreadPlan plan_threads_of_part(KernelAnalysis& analysis, const Program& program,
                                ThreadHeuristics heuristics) {
  heuristics.most_group = std::min(heuristics.most_group, heuristics.block);
  heuristics.most_column_group =
      std::min(heuristics.most_column_group, heuristics.block / heuristics.column_width);
  ThreadPlan plan = plan_threads(analysis, program, heuristics);
  while (plan.threads() < heuristics.block) plan.groups *= 2;
  return plan;
}

}  // namespace litz
