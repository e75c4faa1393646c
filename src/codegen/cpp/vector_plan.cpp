#include "codegen/cpp/vector_plan.h"

#include <algorithm>
#include <array>

#include "codegen/cpp/cpp_body.h"
#include "schedule/expr_cost.h"

namespace litz {
namespace {

// Bytes of the element type in which most of the work is done.
int main_bytes(KernelAnalysis& analysis, const Program& program) {
  std::array<int, 9> work{};
  visit_postorder(analysis.all_roots(), [&](Expr e) {
    switch (e.op()) {
      case ExprOp::kConstant:
      case ExprOp::kIndexValue:
      case ExprOp::kLoad:
      case ExprOp::kReduced:
        return;
      case ExprOp::kPhilox32:  // seed and number are of 64 bits, but no vectors
      case ExprOp::kPhilox64:
        work[static_cast<size_t>(size_of(e.dtype()))] += operation_work(e.op());
        return;
      default:
        break;
    }
    int64_t bytes = size_of(register_dtype(e.dtype()));
    for (Expr operand : e.operands()) {
      if (operand.op() != ExprOp::kIndexValue)
        bytes = std::max(bytes, size_of(register_dtype(operand.dtype())));
    }
    work[static_cast<size_t>(bytes)] += operation_work(e.op());
  });
  for (const KernelReduction& reduction : analysis.kernel().reductions) {
    work[static_cast<size_t>(size_of(register_dtype(reduction.value.dtype())))] += 1;
  }
  const auto most = std::max_element(work.begin(), work.end());
  if (*most > 0) return static_cast<int>(most - work.begin());
  int64_t bytes = 1;
  for (const KernelStore& store : analysis.kernel().stores) {
    bytes = std::max(bytes, size_of(register_dtype(program.buffer(store.buffer).dtype)));
  }
  return static_cast<int>(bytes);
}

bool allowed(KernelAnalysis& analysis, size_t loop, bool outer) {
  const Kernel& kernel = analysis.kernel();
  const Index extent = analysis.extent(loop);
  if (extent.is_constant() && extent.constant() < 2) return false;
  const LoopMask bit = LoopMask{1} << loop;
  for (const KernelReduction& reduction : kernel.reductions) {
    if (outer) continue;
    if (reduction.running) return false;
    if (reduction.position.valid() && !linear_in(reduction.position, analysis.variable(loop)))
      return false;
  }
  for (const KernelStore& store : kernel.stores) {
    const bool runtime = std::any_of(store.runtime_indices.begin(), store.runtime_indices.end(),
                                     [&](Expr e) { return (analysis.depends(e) & bit) != 0; });
    if (runtime) return false;
    if (store.mode != StoreMode::kStore || kernel.sequential) {
      if (analysis.walk(store.offset, loop) != KernelAnalysis::Walk::kContiguous) return false;
    }
  }
  return true;
}

// Iterations of the inner loops as they count in a score: memory walked once for each of them
// matters more than what is walked once around them.
int inner_weight(const KernelAnalysis& analysis) {
  constexpr int64_t kMost = 16;
  int64_t iterations = 1;
  for (size_t i = analysis.kernel().outer.size(); i < analysis.num_loops(); ++i) {
    const Index extent = analysis.extent(i);
    iterations *= extent.is_constant() ? std::clamp<int64_t>(extent.constant(), 1, kMost) : kMost;
    iterations = std::min(iterations, kMost);
  }
  return static_cast<int>(iterations);
}

// How well memory is walked along the loop; higher is better, below zero is worse than no vectors.
// The bonus is for arithmetic, which gains whatever memory does.
int score(KernelAnalysis& analysis, size_t loop, int lanes, int bonus) {
  const Kernel& kernel = analysis.kernel();
  const bool outer = loop < kernel.outer.size();
  const int inner = inner_weight(analysis);
  const Index extent = analysis.extent(loop);
  // Of a loop that is shorter than a vector most lanes do nothing.
  const int64_t used = extent.is_constant() ? std::min<int64_t>(extent.constant(), lanes) : lanes;
  int total = static_cast<int>(bonus * inner * used / lanes);
  const auto add = [&](Index offset, int weight) {
    switch (analysis.walk(offset, loop)) {
      case KernelAnalysis::Walk::kContiguous:
        total += 2 * weight;
        break;
      case KernelAnalysis::Walk::kStill:
        total += weight;
        break;
      case KernelAnalysis::Walk::kStrided:
        total -= 2 * weight;
        break;
      case KernelAnalysis::Walk::kIrregular:
        total -= 3 * weight;
        break;
    }
  };
  visit_postorder(analysis.all_roots(), [&](Expr e) {
    if (e.op() != ExprOp::kLoad) return;
    const bool repeated = (analysis.depends(e) & analysis.inner_mask()) != 0;
    if (!repeated && !outer) return;
    const int weight = 2 * (repeated ? inner : 1);
    const bool runtime = std::any_of(e.operands().begin(), e.operands().end(), [&](Expr o) {
      return (analysis.depends(o) >> loop & 1) != 0;
    });
    if (runtime) {
      total -= weight;
    } else {
      add(e.coordinates()[0], weight);
    }
  });
  for (const KernelStore& store : kernel.stores) {
    if (store.inner || outer) add(store.offset, 3 * (store.inner ? inner : 1));
  }
  if (used < lanes) total -= 4 * inner;
  return total;
}

}  // namespace

VectorPlan plan_vectors(KernelAnalysis& analysis, const Program& program, int vector_bytes) {
  const Kernel& kernel = analysis.kernel();
  const int lanes = std::clamp(vector_bytes / main_bytes(analysis, program), 2, 64);
  const LoopMask all = analysis.outer_mask() | analysis.inner_mask();
  const int bonus = std::min(20, analysis.work(analysis.all_roots(), all).operations / 4);
  VectorPlan plan;
  int best = 0;
  const auto consider = [&](size_t loop, bool outer) {
    if (!allowed(analysis, loop, outer)) return;
    const int points = score(analysis, loop, lanes, bonus);
    if (points > best || (points == best && plan.loop == VectorPlan::kNone)) {
      best = points;
      plan = {loop, outer, lanes};
    }
  };
  if (!kernel.inner.empty()) consider(kernel.outer.size() + kernel.inner.size() - 1, false);
  if (!kernel.outer.empty()) consider(kernel.outer.size() - 1, true);
  return plan;
}

}  // namespace litz
