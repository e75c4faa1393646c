#include "codegen/common/online_sums.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace litz {
namespace {

bool is_infinity_test_of(Expr e, Expr operand) {
  return e.op() == ExprOp::kIsInf && e.operands()[0] == operand;
}

bool is_zero(Expr e) { return e.op() == ExprOp::kConstant && e.scalar().real == 0; }

// Of the sum's value exp(x - m) or exp(x - (isinf(m) ? 0 : m)): what m is in the kernel.
std::optional<OnlineSum> online_sum(const Kernel& kernel, const KernelReduction& sum) {
  const DType dtype = sum.value.dtype();
  if (sum.kind != ReductionKind::kSum || sum.running ||
      (dtype != DType::kFloat32 && dtype != DType::kFloat64) || sum.value.op() != ExprOp::kExp)
    return std::nullopt;
  const Expr difference = sum.value.operands()[0];
  if (difference.op() != ExprOp::kSub) return std::nullopt;
  Expr shift = difference.operands()[1];
  OnlineSum online;
  if (shift.op() == ExprOp::kWhere && is_zero(shift.operands()[1]) &&
      is_infinity_test_of(shift.operands()[0], shift.operands()[2])) {
    online.of_finite = true;
    shift = shift.operands()[2];
  }
  if (shift.op() != ExprOp::kReduced) return std::nullopt;
  online.greatest = shift.number();
  const KernelReduction& greatest = kernel.reductions[online.greatest];
  if (greatest.kind != ReductionKind::kMax || greatest.running ||
      greatest.value != difference.operands()[0] || greatest.stage + 1 != sum.stage)
    return std::nullopt;
  return online;
}

bool has_inner_stores(const Kernel& kernel, uint32_t stage) {
  return std::any_of(kernel.stores.begin(), kernel.stores.end(),
                     [&](const KernelStore& s) { return s.inner && s.stage == stage; });
}

// Moves the sums of the stage to the one before, if there is nothing else in it.
bool drop_stage(Kernel& kernel, uint32_t stage) {
  if (has_inner_stores(kernel, stage)) return false;
  Kernel changed = kernel;
  for (KernelReduction& r : changed.reductions) {
    if (r.stage < stage) continue;
    if (r.stage == stage) {
      r.online = online_sum(kernel, r);
      if (!r.online) return false;
      r.value = r.value.operands()[0].operands()[0];
    }
    --r.stage;
  }
  for (KernelStore& s : changed.stores) {
    if (s.inner && s.stage > stage) --s.stage;
  }
  --changed.num_stages;
  kernel = std::move(changed);
  return true;
}

}  // namespace

std::optional<Kernel> with_online_sums(const Kernel& kernel) {
  if (kernel.inner.empty()) return std::nullopt;
  std::optional<Kernel> changed;
  for (uint32_t stage = 1; stage < (changed ? *changed : kernel).num_stages;) {
    Kernel next = changed ? *changed : kernel;
    if (drop_stage(next, stage)) {
      changed = std::move(next);
    } else {
      ++stage;
    }
  }
  return changed;
}

double lowest_finite(DType dtype) {
  return dtype == DType::kFloat64 ? std::numeric_limits<double>::lowest()
                                  : std::numeric_limits<float>::lowest();
}

}  // namespace litz
