// The largest elements of windows over the last two dimensions, and where they are in the plane.
#include <array>

#include "lowering/index_helpers.h"
#include "lowering/pool_axes.h"
#include "lowering/pooling_rows.h"
#include "lowering/reduction_helpers.h"

namespace litz {
namespace {

using Lowered = std::optional<Unsupported>;
using Position = std::span<const Index>;

// One axis of the windows.
struct MaxAxis {
  WindowAxis window;
  Index input;
  int64_t dilation;
  std::function<Index(Index at)> first;  // the first coordinate of a window that is in the input
};
using MaxAxes = std::array<MaxAxis, 2>;

// What the elements outside of the input count as.
Expr lowest(OpCall& call, const TensorValue& input) {
  return call.exprs().constant(identity(ReductionKind::kMax, computation_dtype(input.dtype)));
}

// Where the element is in its plane.
Expr place_of(OpCall& call, const MaxAxes& axes, Index y, Index x) {
  return call.exprs().index_value(y * axes[1].input + x);
}

// The element of a window at one tap.
struct Tap {
  Expr value;
  Expr place;
};
Tap load_tap(OpCall& call, const TensorValue& input, const MaxAxes& axes, Position p, Index row_tap,
             Index column_tap) {
  std::vector<Index> at(p.begin(), p.end());
  const size_t row = at.size() - 2;
  at[row] = axes[0].window.position(p[row], row_tap);
  at[row + 1] = axes[1].window.position(p[row + 1], column_tap);
  const Expr inside = conjunction(axes[0].window.is_inside(p[row], row_tap),
                                  axes[1].window.is_inside(p[row + 1], column_tap));
  return {call.exprs().masked(inside, load_wide(call, input, at), lowest(call, input)),
          place_of(call, axes, at[row], at[row + 1])};
}

Expr first_place(OpCall& call, const MaxAxes& axes, Position p) {
  const size_t row = p.size() - 2;
  return place_of(call, axes, axes[0].first(p[row]), axes[1].first(p[row + 1]));
}

// The first maximum, or the last NaN, tap by tap: one counts when it is larger than all before it;
// the first one inside is the start.
Tap window_maximum(OpCall& call, const TensorValue& input, const MaxAxes& axes, Position p) {
  IndexContext& indices = call.indices();
  Tap best = {lowest(call, input), first_place(call, axes, p)};
  for (int64_t i = 0; i < axes[0].window.taps.constant(); ++i) {
    for (int64_t j = 0; j < axes[1].window.taps.constant(); ++j) {
      const Tap tap = load_tap(call, input, axes, p, indices.constant(i), indices.constant(j));
      const Expr is_better = either(greater(tap.value, best.value), is_nan(tap.value));
      best = {select(is_better, tap.value, best.value), select(is_better, tap.place, best.place)};
    }
  }
  return best;
}

// The coordinate of a tap that is known at run time, and whether it is in the input.
struct Coordinate {
  Expr value;
  Expr is_inside;
};
Coordinate coordinate_of(OpCall& call, const MaxAxis& axis, Index at, Expr tap) {
  const Index start = axis.window.position(at, call.indices().constant(0));
  const Expr value = call.exprs().index_value(start) + tap * static_cast<double>(axis.dilation);
  return {value, both(greater_equal(value, 0), less(value, call.exprs().index_value(axis.input)))};
}

// The same for windows that are loops: two reductions say where the first maximum and the last NaN
// are.
void set_by_loops(OpCall& call, const TensorValue& input, const MaxAxes& axes) {
  ExprContext& exprs = call.exprs();
  std::vector<Index> sizes = call.result().sizes;
  const size_t rank = sizes.size();
  const Index width = axes[1].window.taps;
  sizes.push_back(axes[0].window.taps);
  sizes.push_back(width);
  const std::array<size_t, 2> window = {rank, rank + 1};
  const auto value_at = [&](Position p) {
    return load_tap(call, input, axes, p.first(rank), p[rank], p[rank + 1]).value;
  };
  const TensorValue best = call.reduce(ReductionKind::kMax, sizes, window, false, value_at);
  const TensorValue first = call.reduce(ReductionKind::kArgMax, sizes, window, false, value_at);
  const TensorValue last_nan =
      call.reduce(ReductionKind::kMax, sizes, window, false, [&](Position p) {
        return select(is_nan(value_at(p)), exprs.index_value(p[rank] * width + p[rank + 1]), -1.0);
      });
  set_pointwise(call, 0, [&](Position p) { return call.load(best, p); });
  set_pointwise(call, 1, [&](Position p) {
    const Expr nan = call.load(last_nan, p);
    const Expr tap = select(greater_equal(nan, 0), nan, call.load(first, p));
    const Expr row_tap = apply<ExprOp::kTruncDiv>(tap, exprs.index_value(width));
    const Coordinate y = coordinate_of(call, axes[0], p[rank - 2], row_tap);
    const Coordinate x =
        coordinate_of(call, axes[1], p[rank - 1], tap - row_tap * exprs.index_value(width));
    // Outside is as low as the lowest number inside.
    return select(both(y.is_inside, x.is_inside),
                  y.value * exprs.index_value(axes[1].input) + x.value, first_place(call, axes, p));
  });
}

void set_window_maximum(OpCall& call, const TensorValue& input, const MaxAxes& axes) {
  if (!is_unrolled(axes[0].window, axes[1].window)) {
    set_by_loops(call, input, axes);
    return;
  }
  set_pointwise(call, 0, [&](Position p) { return window_maximum(call, input, axes, p).value; });
  set_pointwise(call, 1, [&](Position p) { return window_maximum(call, input, axes, p).place; });
}

Lowered lower_max_pool(OpCall& call) {
  const TensorValue input = call.tensor("self");
  const std::array<PoolAxis, 2> axes = pool_axes(call, input.sizes, call.result().sizes);
  const auto max_axis = [&](const PoolAxis& axis) {
    return MaxAxis{pool_window(call, axis), axis.input, axis.dilation, [axis, &call](Index at) {
                     const Index before =
                         larger(floor_div(-axis.start(at) + (axis.dilation - 1), axis.dilation),
                                call.indices().constant(0));
                     return axis.start(at) + before * axis.dilation;
                   }};
  };
  set_window_maximum(call, input, {max_axis(axes[0]), max_axis(axes[1])});
  return std::nullopt;
}

Lowered lower_adaptive_max_pool(OpCall& call) {
  const TensorValue input = call.tensor("self");
  const auto axes = adaptive_axes(call, input.sizes, call.result().sizes);
  if (!axes) return Unsupported{kUnknownWindows};
  const auto max_axis = [&](const AdaptiveAxis& axis) {
    return MaxAxis{adaptive_window(call, axis), axis.input, 1,
                   [axis](Index at) { return axis.start(at); }};
  };
  set_window_maximum(call, input, {max_axis((*axes)[0]), max_axis((*axes)[1])});
  return std::nullopt;
}

// Every window adds its gradient where its maximum was. A plane is the last `dims` dimensions.
Lowered lower_backward(OpCall& call, size_t dims) {
  const TensorValue grad = call.tensor("grad_output");
  const TensorValue indices = call.tensor("indices");
  const std::vector<Index>& sizes = call.result().sizes;
  const std::vector<Index> plane(sizes.end() - static_cast<std::ptrdiff_t>(dims), sizes.end());
  const Index count = product(call.indices(), plane);
  const auto zero = [&](Position) { return call.exprs().constant(call.result().dtype, 0); };
  set_scatter(call, zero, StoreMode::kAdd, grad.sizes, [&](Position p) {
    OpCall::Store store;
    store.target.assign(p.begin(), p.end() - static_cast<std::ptrdiff_t>(dims));
    for (Index coordinate : delinearize(call.indices().indirect(0, count), plane)) {
      store.target.push_back(coordinate);
    }
    store.runtime_indices = {load_index(call, indices, p, count, Negative::kIsError)};
    store.value = call.load(grad, p);
    return store;
  });
  return std::nullopt;
}
Lowered lower_planes_backward(OpCall& call) { return lower_backward(call, 2); }
Lowered lower_volumes_backward(OpCall& call) { return lower_backward(call, 3); }

constexpr LoweringRow kRows[] = {
    {"aten::max_pool2d_with_indices", lower_max_pool},
    {"aten::max_pool2d_with_indices_backward", lower_planes_backward},
    {"aten::max_pool3d_with_indices_backward", lower_volumes_backward},
    {"aten::adaptive_max_pool2d", lower_adaptive_max_pool},
    {"aten::adaptive_max_pool2d_backward", lower_planes_backward},
    {"aten::adaptive_max_pool3d_backward", lower_volumes_backward},
};

}  // namespace

std::span<const LoweringRow> max_pooling_rows() { return kRows; }

}  // namespace litz
