#include "codegen/simt/thread_plan.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "codegen/cpp/cpp_body.h"

namespace litz {
namespace {

// An upper bound of |e| and of every partial result while it is computed; saturates.
double magnitude(Index e) {
  switch (e.kind()) {
    case IndexKind::kConstant:
      return std::abs(static_cast<double>(e.constant()));
    case IndexKind::kSymbol: {
      const auto range = e.range();
      return std::max(std::abs(static_cast<double>(range.lo)),
                      std::abs(static_cast<double>(range.hi)));
    }
    case IndexKind::kSum: {
      double total = std::abs(static_cast<double>(e.sum_constant()));
      for (const auto& [coefficient, term] : e.terms())
        total += std::abs(static_cast<double>(coefficient)) * magnitude(term);
      return total;
    }
    case IndexKind::kProduct: {
      double total = 1;
      for (Index factor : e.operands()) total *= std::max(1.0, magnitude(factor));
      return total;
    }
    case IndexKind::kFloorDiv:
    case IndexKind::kMod:
    case IndexKind::kMin:
    case IndexKind::kMax: {
      double most = 0;
      for (Index operand : e.operands()) most = std::max(most, magnitude(operand));
      return most;
    }
  }
  return std::numeric_limits<double>::infinity();
}

// Calls act(offset, bytes of an element, whether it depends on a value) for every load and store.
template <class Act>
void for_each_access(KernelAnalysis& analysis, const Program& program, const Act& act) {
  visit_postorder(analysis.all_roots(), [&](Expr e) {
    if (e.op() == ExprOp::kLoad) act(e.coordinates()[0], size_of(e.dtype()), !e.operands().empty());
  });
  for (const KernelStore& store : analysis.kernel().stores)
    act(store.offset, size_of(program.buffer(store.buffer).dtype), !store.runtime_indices.empty());
}

bool fits_32_bits(KernelAnalysis& analysis, const Program& program) {
  constexpr double kMost = 2147483647.0 - 65536.0;  // room for the threads past the end
  double iterations = 1;
  for (size_t i = 0; i < analysis.num_loops(); ++i)
    iterations *= std::max(1.0, magnitude(analysis.extent(i)));
  bool fits = iterations < kMost;
  for_each_access(analysis, program, [&](Index offset, int64_t, bool indirect) {
    // Indirect positions are 64-bit values, in whose arithmetic the rest takes part.
    if (!indirect && !(magnitude(offset) < kMost)) fits = false;
  });
  return fits;
}

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

// Reads along the inner loop jump, while those along the outer one do not.
bool walks_columns(KernelAnalysis& analysis, const Program& program,
                   const ThreadHeuristics& heuristics) {
  const Kernel& kernel = analysis.kernel();
  if (kernel.outer.empty()) return false;
  const size_t outer = kernel.outer.size() - 1;
  const size_t inner = analysis.num_loops() - 1;
  const Index width = analysis.extent(outer);
  if (width.is_constant() && width.constant() < heuristics.column_width / 2) return false;
  int score = 0;
  for_each_access(analysis, program, [&](Index offset, int64_t, bool) {
    if (analysis.walk(offset, inner) == KernelAnalysis::Walk::kContiguous) score -= 2;
    if (analysis.walk(offset, outer) == KernelAnalysis::Walk::kContiguous &&
        analysis.walk(offset, inner) == KernelAnalysis::Walk::kStrided)
      score += 2;
  });
  return score > 0;
}

// One stage that only reduces, with constant extents.
bool can_split(KernelAnalysis& analysis) {
  const Kernel& kernel = analysis.kernel();
  if (kernel.num_stages != 1 || kernel.sequential) return false;
  for (const KernelStore& store : kernel.stores) {
    if (store.inner || store.mode != StoreMode::kStore) return false;
  }
  for (size_t i = 0; i < analysis.num_loops(); ++i) {
    if (!analysis.extent(i).is_constant()) return false;
  }
  return true;
}

int splits_of(KernelAnalysis& analysis, const ThreadPlan& plan, int64_t iterations,
              const ThreadHeuristics& heuristics) {
  if (!can_split(analysis) || iterations < heuristics.long_row || plan.group == 1) return 1;
  int64_t rows = 1;
  for (size_t i = 0; i < analysis.kernel().outer.size(); ++i) rows *= analysis.extent(i).constant();
  const int64_t blocks = (rows + plan.groups - 1) / plan.groups;
  if (rows == 0 || blocks >= heuristics.few_blocks) return 1;
  const int64_t turns = int64_t{plan.group} * plan.lanes * heuristics.turns;
  return static_cast<int>(std::clamp<int64_t>(
      std::min(heuristics.many_blocks / blocks, iterations / turns), 1, heuristics.many_blocks));
}

// Fills in turned_loads and turned_loop, where one loop serves all of them.
void plan_turned_loads(KernelAnalysis& analysis, ThreadPlan& plan) {
  const Kernel& kernel = analysis.kernel();
  if (kernel.outer.size() < 2 || kernel.sequential) return;
  for (const KernelStore& store : kernel.stores) {
    if (store.mode != StoreMode::kStore || !store.runtime_indices.empty()) return;
  }
  const size_t last = kernel.outer.size() - 1;
  size_t along = SIZE_MAX;
  bool possible = true;
  std::vector<Expr> loads;
  visit_postorder(analysis.outer_roots(), [&](Expr e) {
    // Loads under a condition must not happen ahead of it.
    if (e.op() == ExprOp::kMasked) possible = false;
    if (e.op() != ExprOp::kLoad || !e.operands().empty()) return;
    const Index offset = e.coordinates()[0];
    if (analysis.walk(offset, last) != KernelAnalysis::Walk::kStrided) return;
    bool contiguous = false;
    for (size_t loop = 0; loop < last; ++loop) {
      if (analysis.walk(offset, loop) != KernelAnalysis::Walk::kContiguous) continue;
      if (along != SIZE_MAX && along != loop) possible = false;
      along = loop;
      contiguous = true;
    }
    if (contiguous) loads.push_back(e);
  });
  if (!possible || loads.empty()) return;
  for (size_t loop : {along, last}) {
    const Index e = analysis.extent(loop);
    if (e.is_constant() && e.constant() < kTurnedEdge / 2) return;
  }
  plan.turned_loads = std::move(loads);
  plan.turned_loop = along;
}

int power_of_two(int64_t value) {
  return static_cast<int>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, value))));
}

// So many threads in a block a backend may ask for.
constexpr int64_t kMostThreads = 4096;

int64_t iterations_or_unknown(const KernelAnalysis& analysis, size_t first, size_t last) {
  int64_t total = 1;
  for (size_t i = first; i < last; ++i) {
    const Index extent = analysis.extent(i);
    if (!extent.is_constant()) return -1;
    total *= extent.constant();
  }
  return total;
}

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

}  // namespace

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
    if (!kernel.outer.empty()) {
      plan.vector_loop = kernel.outer.size() - 1;
      plan.lanes = lanes_along(analysis, program, plan.vector_loop, heuristics);
      if (heuristics.local_memory && plan.groups % kTurnedEdge == 0)
        plan_turned_loads(analysis, plan);
      // A tail of its own only where it is the only loop.
      if (kernel.outer.size() > 1)
        plan.lanes = dividing(plan.lanes, analysis.extent(plan.vector_loop));
    }
    return plan;
  }
  if (running) return plan;

  int64_t iterations = 1;
  for (size_t i = kernel.outer.size(); i < analysis.num_loops(); ++i) {
    const Index e = analysis.extent(i);
    iterations *= e.is_constant() ? std::max<int64_t>(e.constant(), 1) : 4096;
    iterations = std::min<int64_t>(iterations, int64_t{1} << 40);
  }
  if (walks_columns(analysis, program, heuristics)) {
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
        std::max(power_of_two(iterations / (plan.lanes * heuristics.turns)), 2 * heuristics.warp),
        heuristics.most_group);
  }
  plan.groups = std::max(1, heuristics.block / plan.group);
  if (plan.group > heuristics.warp) plan.groups = 1;
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

}  // namespace litz
