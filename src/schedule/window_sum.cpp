#include "schedule/window_sum.h"

#include <algorithm>

namespace litz {
namespace {

bool varies_along(Expr load, Index variable) {
  const std::span<const Index> at = load.coordinates();
  return std::any_of(at.begin(), at.end(), [&](Index i) { return i.depends_on(variable); });
}

bool is_plain_load(Expr e) {
  return e.op() == ExprOp::kLoad && e.dtype() == DType::kFloat32 && e.operands().empty();
}

// Comparisons of one position with a number, all of which have to hold.
bool add_bounds(Expr condition, std::vector<WindowSum::Bound>& bounds) {
  if (condition.op() == ExprOp::kBitAnd)
    return add_bounds(condition.operand(0), bounds) && add_bounds(condition.operand(1), bounds);
  if (condition.op() != ExprOp::kLt) return false;
  const Expr a = condition.operand(0);
  const Expr b = condition.operand(1);
  const auto number_in = [](Expr e) -> std::optional<int64_t> {
    if (e.op() == ExprOp::kConstant) return e.scalar().integer;
    if (e.op() == ExprOp::kIndexValue && e.index().is_constant()) return e.index().constant();
    return std::nullopt;
  };
  const std::optional<int64_t> low = number_in(a);
  const std::optional<int64_t> high = number_in(b);
  if (low && b.op() == ExprOp::kIndexValue) {
    bounds.push_back({b.index(), *low + 1, INT64_MAX});
    return true;
  }
  if (!high || a.op() != ExprOp::kIndexValue) return false;
  bounds.push_back({a.index(), INT64_MIN, *high});
  return true;
}

std::optional<WindowSum> window_of(Expr value, std::span<const Index> outer,
                                   std::span<const Index> taps) {
  WindowSum sum;
  if (value.op() == ExprOp::kMasked) {
    if (value.operand(2).op() != ExprOp::kConstant || !value.operand(2).scalar().is_zero() ||
        !add_bounds(value.operand(0), sum.bounds))
      return std::nullopt;
    value = value.operand(1);
  }
  if (value.op() != ExprOp::kMul || !is_plain_load(value.operand(0)) ||
      !is_plain_load(value.operand(1)))
    return std::nullopt;
  const Index y = outer[outer.size() - 3];
  const Index x = outer[outer.size() - 2];
  const Index channel = outer.back();
  for (Index v : {y, x, channel, taps[0], taps[1]}) {
    if (!v.is_symbol()) return std::nullopt;
  }
  const auto is_weight = [&](Expr load) {
    return std::none_of(outer.begin(), outer.end() - 1,
                        [&](Index v) { return v.is_symbol() && varies_along(load, v); });
  };
  const bool is_second = is_weight(value.operand(1));
  if (is_second == is_weight(value.operand(0))) return std::nullopt;
  sum.input = value.operand(is_second ? 0 : 1);
  sum.weight = value.operand(is_second ? 1 : 0);
  for (Expr load : {sum.input, sum.weight}) {
    if (!varies_along(load, channel) || !varies_along(load, taps[0]) ||
        !varies_along(load, taps[1]))
      return std::nullopt;
  }
  if (!varies_along(sum.input, y) || !varies_along(sum.input, x)) return std::nullopt;
  return sum;
}

}  // namespace

std::optional<WindowSum> window_sum(const Operation& operation) {
  const auto* op = std::get_if<Reduction>(&operation.v);
  if (op == nullptr || !op->is_product || op->kind != ReductionKind::kSum ||
      op->loops.variables.size() < 3 || op->reduction.variables.size() != 2)
    return std::nullopt;
  return window_of(op->value, op->loops.variables, op->reduction.variables);
}

std::optional<WindowSum> window_sum(const Kernel& kernel) {
  if (!kernel.is_product || kernel.reductions.size() != 1 || kernel.outer.size() < 3 ||
      kernel.inner.size() != 2)
    return std::nullopt;
  const KernelReduction& r = kernel.reductions[0];
  const bool only_behind = std::all_of(kernel.stores.begin(), kernel.stores.end(),
                                       [](const KernelStore& s) { return !s.inner; });
  if (r.kind != ReductionKind::kSum || r.running || r.over_outer || !only_behind)
    return std::nullopt;
  std::vector<Index> outer;
  for (const KernelLoop& loop : kernel.outer) outer.push_back(loop.variable);
  return window_of(r.value, outer, std::vector{kernel.inner[0].variable, kernel.inner[1].variable});
}

}  // namespace litz
