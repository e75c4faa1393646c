#include "codegen/common/kernel_analysis.h"

#include <algorithm>
#include <unordered_set>

#include "schedule/expr_cost.h"
#include "support/error.h"

namespace litz {

KernelAnalysis::KernelAnalysis(const Kernel& kernel) : kernel_(kernel) {
  for (const KernelLoop& loop : kernel.outer) {
    variables_.push_back(loop.variable);
    extents_.push_back(loop.extent);
  }
  outer_mask_ = (LoopMask{1} << variables_.size()) - 1;
  for (const KernelLoop& loop : kernel.inner) {
    variables_.push_back(loop.variable);
    extents_.push_back(loop.extent);
  }
  LITZ_CHECK(variables_.size() < 63, "a kernel of 64 loops or more");
  all_mask_ = (LoopMask{1} << variables_.size()) - 1;
}

LoopMask KernelAnalysis::depends(Index index) const {
  LoopMask mask = 0;
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (index.depends_on(variables_[i])) mask |= LoopMask{1} << i;
  }
  return mask;
}

LoopMask KernelAnalysis::depends(Expr root) {
  const auto known = depends_.find(root);
  if (known != depends_.end()) return known->second;
  visit_postorder(std::span<const Expr>(&root, 1), [&](Expr e) {
    if (depends_.contains(e)) return;
    LoopMask mask = 0;
    for (Expr operand : e.operands()) mask |= depends_.at(operand);
    switch (e.op()) {
      case ExprOp::kLoad:
        mask |= depends(e.coordinates()[0]);
        break;
      case ExprOp::kIndexValue:
      case ExprOp::kCheckIndex:
        mask |= depends(e.index());
        break;
      case ExprOp::kReduced: {
        const KernelReduction& reduction = kernel_.reductions[e.number()];
        if (kernel_.attention && e.number() == 0) {
          // The product: along all loops but the feature's.
          mask |= (all_mask_ & ~(LoopMask{1} << (kernel_.outer.size() - 1))) | kIterationBit;
          break;
        }
        mask |= reduction.over_outer
                    ? inner_mask()
                    : (reduction.running ? all_mask_ : outer_mask_) | kIterationBit;
        break;
      }
      default:
        break;
    }
    depends_.emplace(e, mask);
  });
  return depends_.at(root);
}

KernelAnalysis::Walk KernelAnalysis::walk(Index offset, size_t loop) const {
  const auto linear = linear_in(offset, variables_[loop]);
  if (!linear) return Walk::kIrregular;
  if (linear->stride.is_constant(0)) return Walk::kStill;
  return linear->stride.is_constant(1) ? Walk::kContiguous : Walk::kStrided;
}

Index KernelAnalysis::count(IndexContext& context, std::span<const size_t> loops) const {
  Index total = context.constant(1);
  for (size_t loop : loops) total = total * extent(loop);
  return total;
}

template <class Select>
std::vector<Expr> KernelAnalysis::store_roots(const Select& select) const {
  std::vector<Expr> roots;
  for (const KernelStore& store : kernel_.stores) {
    if (!select(store)) continue;
    roots.push_back(store.value);
    roots.insert(roots.end(), store.runtime_indices.begin(), store.runtime_indices.end());
  }
  return roots;
}

std::vector<Expr> KernelAnalysis::stage_roots(uint32_t stage) const {
  std::vector<Expr> roots;
  for (const KernelReduction& reduction : kernel_.reductions) {
    if (reduction.stage == stage) roots.push_back(reduction.value);
  }
  if (kernel_.attention && stage == 1) roots.push_back(kernel_.attention->score);
  const std::vector<Expr> stored =
      store_roots([&](const KernelStore& store) { return store.inner && store.stage == stage; });
  roots.insert(roots.end(), stored.begin(), stored.end());
  return roots;
}

std::vector<Expr> KernelAnalysis::outer_roots() const {
  return store_roots([](const KernelStore& store) { return !store.inner && !store.after_outer; });
}

std::vector<Expr> KernelAnalysis::after_outer_roots() const {
  return store_roots([](const KernelStore& store) { return store.after_outer; });
}

std::vector<Expr> KernelAnalysis::row_roots() const {
  std::vector<Expr> roots = outer_roots();
  for (uint32_t stage = 0; stage < kernel_.num_stages; ++stage) {
    const std::vector<Expr> more = stage_roots(stage);
    roots.insert(roots.end(), more.begin(), more.end());
  }
  return roots;
}

std::vector<Expr> KernelAnalysis::all_roots() const {
  std::vector<Expr> roots = row_roots();
  const std::vector<Expr> last = after_outer_roots();
  roots.insert(roots.end(), last.begin(), last.end());
  return roots;
}

KernelAnalysis::Work KernelAnalysis::work(const std::vector<Expr>& roots, LoopMask along) {
  Work total;
  visit_postorder(roots, [&](Expr e) {
    if ((depends(e) & along) == 0) return;
    total.operations += operation_work(e.op());
    if (e.op() == ExprOp::kLoad) total.bytes += static_cast<int>(size_of(e.dtype()));
  });
  return total;
}

StagesOfLoads stages_of_loads(const KernelAnalysis& analysis) {
  StagesOfLoads stages;
  for (uint32_t stage = 0; stage < analysis.kernel().num_stages; ++stage) {
    visit_postorder(analysis.stage_roots(stage), [&](Expr e) {
      if (e.op() == ExprOp::kLoad) stages.try_emplace(e, stage, stage).first->second.second = stage;
    });
  }
  return stages;
}

void visit_unconditional(std::vector<Expr> pending, const std::function<void(Expr)>& visit) {
  std::unordered_set<Expr> seen;
  std::reverse(pending.begin(), pending.end());
  while (!pending.empty()) {
    const Expr e = pending.back();
    pending.pop_back();
    if (!seen.insert(e).second) continue;
    visit(e);
    const std::span<const Expr> operands = e.operands();
    const size_t count = e.op() == ExprOp::kMasked ? 1 : operands.size();
    for (size_t i = count; i-- > 0;) pending.push_back(operands[i]);
  }
}

std::vector<Expr> unconditional_loads(std::vector<Expr> roots) {
  std::vector<Expr> loads;
  visit_unconditional(std::move(roots), [&](Expr e) {
    if (e.op() == ExprOp::kLoad) loads.push_back(e);
  });
  return loads;
}

}  // namespace litz
