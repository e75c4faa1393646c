#include "schedule/matrix_product.h"

#include <algorithm>

namespace litz {
namespace {

// A half float as a float32: the load of it.
std::optional<Expr> widened_load(Expr e) {
  if (e.op() != ExprOp::kCast || e.dtype() != DType::kFloat32) return std::nullopt;
  const Expr load = e.operands()[0];
  if (load.op() != ExprOp::kLoad || !is_half(load.dtype()) || !load.operands().empty())
    return std::nullopt;
  return load;
}

bool varies_along(Expr load, Index variable) {
  const std::span<const Index> at = load.coordinates();
  return std::any_of(at.begin(), at.end(), [&](Index i) { return i.depends_on(variable); });
}

std::optional<MatrixProduct> product_of(Expr value, Index m, Index n, Index k) {
  if (value.op() != ExprOp::kMul || !m.is_symbol() || !n.is_symbol() || !k.is_symbol())
    return std::nullopt;
  const std::optional<Expr> a = widened_load(value.operands()[0]);
  const std::optional<Expr> b = widened_load(value.operands()[1]);
  if (!a || !b || a->dtype() != b->dtype()) return std::nullopt;
  const auto is_left = [&](Expr load) {
    return varies_along(load, m) && varies_along(load, k) && !varies_along(load, n);
  };
  const auto is_right = [&](Expr load) {
    return varies_along(load, n) && varies_along(load, k) && !varies_along(load, m);
  };
  if (is_left(*a) && is_right(*b)) return MatrixProduct{*a, *b};
  if (is_left(*b) && is_right(*a)) return MatrixProduct{*b, *a};
  return std::nullopt;
}

}  // namespace

std::optional<MatrixProduct> matrix_product(const Operation& operation) {
  const auto* op = std::get_if<Reduction>(&operation.v);
  if (op == nullptr || !op->is_product || op->kind != ReductionKind::kSum ||
      op->loops.variables.size() < 2 || op->reduction.variables.size() != 1)
    return std::nullopt;
  const size_t m = op->loops.variables.size() - 2;
  return product_of(op->value, op->loops.variables[m], op->loops.variables[m + 1],
                    op->reduction.variables[0]);
}

std::optional<MatrixProduct> matrix_product(const Kernel& kernel) {
  if (!kernel.is_product || kernel.reductions.size() != 1 || kernel.outer.size() < 2 ||
      kernel.inner.size() != 1)
    return std::nullopt;
  const KernelReduction& r = kernel.reductions[0];
  const bool only_behind = std::all_of(kernel.stores.begin(), kernel.stores.end(),
                                       [](const KernelStore& s) { return !s.inner; });
  if (r.kind != ReductionKind::kSum || r.running || r.over_outer || !only_behind)
    return std::nullopt;
  const size_t m = kernel.outer.size() - 2;
  return product_of(r.value, kernel.outer[m].variable, kernel.outer[m + 1].variable,
                    kernel.inner[0].variable);
}

}  // namespace litz
