#include "codegen/cuda/thread_plan.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "codegen/common/iteration_space.h"
#include "codegen/cpp/cpp_body.h"

namespace litz {
namespace {

constexpr int kBlock = 256;         // threads of a block with small groups
constexpr int kMostThreads = 512;   // of a group
constexpr int64_t kThreadRow = 16;  // inner iterations that one thread does alone
constexpr int64_t kWarpRow = 1024;  // ... and one warp
constexpr int64_t kTurns = 4;       // vectors that each thread of a large group takes
constexpr int kVectorBytes = 16;    // of memory in one access
constexpr int kMostLanes = 8;
constexpr int64_t kKeptElements = 32;  // of a row in each thread's registers
constexpr int kColumnWidth = 32;

// Lanes that all accesses allow along the loop: its neighbours are neighbours in memory everywhere,
// or the same element.
int lanes_along(KernelAnalysis& analysis, const Program& program, size_t loop) {
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
  return static_cast<int>(std::clamp<int64_t>(kVectorBytes / smallest, 1, kMostLanes));
}

// The most lanes, up to these, that leave no tail.
int dividing(int lanes, Index length) {
  if (!length.is_constant()) return 1;
  while (lanes > 1 && length.constant() % lanes != 0) lanes /= 2;
  return lanes;
}

int splits_of(KernelAnalysis& analysis, const ThreadPlan& plan, int64_t iterations) {
  if (plan.group == 1) return 1;
  return split_rows(analysis, plan.groups, iterations, int64_t{plan.group} * plan.lanes * kTurns);
}

int power_of_two(int64_t value) {
  return static_cast<int>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, value))));
}

}  // namespace

ThreadPlan plan_threads(KernelAnalysis& analysis, const Program& program) {
  const Kernel& kernel = analysis.kernel();
  ThreadPlan plan;
  plan.narrow = fits_32_bits(analysis, program);
  const bool running = std::any_of(kernel.reductions.begin(), kernel.reductions.end(),
                                   [](const KernelReduction& r) { return r.running; });
  if (kernel.inner.empty()) {
    if (!kernel.outer.empty()) {
      plan.vector_loop = kernel.outer.size() - 1;
      plan.lanes = lanes_along(analysis, program, plan.vector_loop);
      TurnedLoads turned = find_turned_loads(analysis, kTurnedEdge / 2);
      plan.turned_loads = std::move(turned.loads);
      plan.turned_loop = turned.loop;
      // A tail of its own only where it is the only loop.
      if (kernel.outer.size() > 1)
        plan.lanes = dividing(plan.lanes, analysis.extent(plan.vector_loop));
    }
    return plan;
  }
  if (running) return plan;

  const int64_t iterations = inner_iterations(analysis);
  if (walks_columns(analysis, program, kColumnWidth / 2)) {
    plan.columns = true;
    plan.groups = kColumnWidth;
    plan.group = std::clamp(power_of_two(iterations / 8), 1, 32);
    if (plan.group < 4) plan.groups = kBlock / plan.group;
    plan.splits = splits_of(analysis, plan, iterations);
    return plan;
  }
  plan.vector_loop = analysis.num_loops() - 1;
  plan.lanes = lanes_along(analysis, program, plan.vector_loop);
  // Rows whose length no vector divides begin at all kinds of addresses.
  if (kernel.inner.size() > 1 || !kernel.outer.empty())
    plan.lanes = dividing(plan.lanes, analysis.extent(plan.vector_loop));
  if (iterations <= kThreadRow) {
    plan.lanes = 1;
  } else if (iterations <= kWarpRow) {
    plan.group = 32;
  } else {
    plan.group = std::clamp(power_of_two(iterations / (plan.lanes * kTurns)), 64, kMostThreads);
  }
  if (kernel.inner.size() == 1 && kernel.num_stages > 1 && plan.group > 1) {
    const Index length = analysis.extent(plan.vector_loop);
    const int64_t step = int64_t{plan.group} * plan.lanes;
    if (length.is_constant() && length.constant() % step == 0 &&
        length.constant() / step * plan.lanes <= kKeptElements)
      plan.turns = static_cast<int>(length.constant() / step);
  }
  plan.groups = std::max(1, kBlock / plan.group);
  if (plan.group > 32) plan.groups = 1;
  plan.splits = splits_of(analysis, plan, iterations);
  return plan;
}

}  // namespace litz
