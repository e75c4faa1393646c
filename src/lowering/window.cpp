#include "lowering/window.h"

#include <algorithm>

#include "lowering/reduction_helpers.h"

namespace litz {
namespace {

bool is_constant_true(Expr condition) {
  return condition.op() == ExprOp::kConstant && condition.scalar().integer != 0;
}

// The term at one tap, 0 outside.
Expr term_at(OpCall& call, std::span<const WindowAxis> axes, std::span<const Index> position,
             std::span<const Index> taps, const std::function<Expr(std::span<const Index>)>& term) {
  const Expr value = term(tap_position(axes, position, taps));
  return call.exprs().masked(is_inside(axes, position, taps), value, number(value, 0));
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

bool is_unrolled(std::span<const WindowAxis> axes) {
  int64_t taps = 1;
  for (const WindowAxis& axis : axes) {
    if (!axis.taps.is_constant()) return false;
    taps *= std::min(axis.taps.constant(), kUnrolledTaps + 1);
  }
  return taps <= kUnrolledTaps;
}

void for_each_tap(OpCall& call, std::span<const WindowAxis> axes, const TapVisitor& visit) {
  int64_t count = 1;
  for (const WindowAxis& axis : axes) count *= axis.taps.constant();
  std::vector<Index> taps(axes.size());
  for (int64_t n = 0; n < count; ++n) {
    int64_t rest = n;
    for (size_t i = axes.size(); i-- > 0;) {
      taps[i] = call.indices().constant(rest % axes[i].taps.constant());
      rest /= axes[i].taps.constant();
    }
    visit(taps);
  }
}

std::vector<Index> tap_position(std::span<const WindowAxis> axes, std::span<const Index> position,
                                std::span<const Index> taps) {
  std::vector<Index> other(position.begin(), position.end());
  const size_t first = position.size() - axes.size();
  for (size_t i = 0; i < axes.size(); ++i)
    other[first + i] = axes[i].position(position[first + i], taps[i]);
  return other;
}

Expr is_inside(std::span<const WindowAxis> axes, std::span<const Index> position,
               std::span<const Index> taps) {
  const size_t first = position.size() - axes.size();
  Expr inside = axes[0].is_inside(position[first], taps[0]);
  for (size_t i = 1; i < axes.size(); ++i)
    inside = conjunction(inside, axes[i].is_inside(position[first + i], taps[i]));
  return inside;
}

void set_window_sum(OpCall& call, std::span<const WindowAxis> axes,
                    const std::function<Expr(std::span<const Index> other)>& term,
                    const std::function<Expr(std::span<const Index> position, Expr sum)>& finish) {
  if (is_unrolled(axes)) {
    set_pointwise(call, 0, [&](std::span<const Index> p) {
      Expr sum;
      for_each_tap(call, axes, [&](std::span<const Index> taps) {
        const Expr value = term_at(call, axes, p, taps, term);
        sum = sum.valid() ? sum + value : value;
      });
      return finish(p, sum);
    });
    return;
  }
  std::vector<Index> sizes = call.result().sizes;
  const size_t rank = sizes.size();
  std::vector<size_t> window;
  for (const WindowAxis& axis : axes) {
    window.push_back(sizes.size());
    sizes.push_back(axis.taps);
  }
  const TensorValue sum =
      call.reduce(ReductionKind::kSum, sizes, window, false, [&](std::span<const Index> p) {
        return term_at(call, axes, p.first(rank), p.subspan(rank), term);
      });
  set_pointwise(call, 0, [&](std::span<const Index> p) { return finish(p, call.load(sum, p)); });
}

}  // namespace litz
