#include "lowering/window.h"

#include <array>

#include "lowering/reduction_helpers.h"

namespace litz {
namespace {

bool is_constant_true(Expr condition) {
  return condition.op() == ExprOp::kConstant && condition.scalar().integer != 0;
}

// The term at one tap, 0 outside.
Expr term_at(OpCall& call, const WindowAxis& rows, const WindowAxis& columns,
             std::span<const Index> position, Index row_tap, Index column_tap,
             const std::function<Expr(std::span<const Index>)>& term) {
  const size_t row = position.size() - 2;
  std::vector<Index> other(position.begin(), position.end());
  other[row] = rows.position(position[row], row_tap);
  other[row + 1] = columns.position(position[row + 1], column_tap);
  const Expr value = term(other);
  return call.exprs().masked(conjunction(rows.is_inside(position[row], row_tap),
                                         columns.is_inside(position[row + 1], column_tap)),
                             value, number(value, 0));
}

}  // namespace

Expr conjunction(Expr a, Expr b) {
  if (is_constant_true(a)) return b;
  return is_constant_true(b) ? a : both(a, b);
}

Expr is_less(OpCall& call, Index a, Index b) {
  if (prove_less(a, b)) return call.exprs().constant_int(DType::kBool, 1);
  return less(call.exprs().index_value(a), call.exprs().index_value(b));
}

Expr in_range(OpCall& call, Index value, Index size) {
  return conjunction(is_less(call, call.indices().constant(-1), value), is_less(call, value, size));
}

Index smaller(Index a, Index b) {
  if (prove_less_equal(a, b)) return a;
  return prove_less_equal(b, a) ? b : min(a, b);
}

Index larger(Index a, Index b) {
  if (prove_less_equal(a, b)) return b;
  return prove_less_equal(b, a) ? a : max(a, b);
}

bool is_unrolled(const WindowAxis& rows, const WindowAxis& columns) {
  return rows.taps.is_constant() && columns.taps.is_constant() &&
         rows.taps.constant() * columns.taps.constant() <= kUnrolledTaps;
}

void set_window_sum(OpCall& call, const WindowAxis& rows, const WindowAxis& columns,
                    const std::function<Expr(std::span<const Index> other)>& term,
                    const std::function<Expr(std::span<const Index> position, Expr sum)>& finish) {
  IndexContext& indices = call.indices();
  if (is_unrolled(rows, columns)) {
    set_pointwise(call, 0, [&](std::span<const Index> p) {
      Expr sum;
      for (int64_t i = 0; i < rows.taps.constant(); ++i) {
        for (int64_t j = 0; j < columns.taps.constant(); ++j) {
          const Expr value =
              term_at(call, rows, columns, p, indices.constant(i), indices.constant(j), term);
          sum = sum.valid() ? sum + value : value;
        }
      }
      return finish(p, sum);
    });
    return;
  }
  std::vector<Index> sizes = call.result().sizes;
  const size_t rank = sizes.size();
  sizes.push_back(rows.taps);
  sizes.push_back(columns.taps);
  const std::array<size_t, 2> window = {rank, rank + 1};
  const TensorValue sum =
      call.reduce(ReductionKind::kSum, sizes, window, false, [&](std::span<const Index> p) {
        return term_at(call, rows, columns, p.first(rank), p[rank], p[rank + 1], term);
      });
  set_pointwise(call, 0, [&](std::span<const Index> p) { return finish(p, call.load(sum, p)); });
}

}  // namespace litz
