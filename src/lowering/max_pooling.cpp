// The largest elements of windows over the last two or three dimensions, and where they are in the
// plane or volume.
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
  Index input;
  int64_t dilation;
  std::function<Index(Index at)> first;  // the first coordinate of a window that is in the input
};

struct MaxWindows {
  std::vector<WindowAxis> windows;
  std::vector<MaxAxis> axes;

  size_t dims() const { return axes.size(); }
  // Where the element with these last coordinates is in its plane or volume.
  Index place(Position coordinates) const {
    Index place = coordinates[0];
    for (size_t i = 1; i < dims(); ++i) place = place * axes[i].input + coordinates[i];
    return place;
  }
};

// What the elements outside of the input count as.
Expr lowest(OpCall& call, const TensorValue& input) {
  return call.exprs().constant(identity(ReductionKind::kMax, computation_dtype(input.dtype)));
}

// The element of a window at one tap.
struct Tap {
  Expr value;
  Expr place;
};
Tap load_tap(OpCall& call, const TensorValue& input, const MaxWindows& all, Position p,
             Position taps) {
  const std::vector<Index> at = tap_position(all.windows, p, taps);
  return {call.exprs().masked(is_inside(all.windows, p, taps), load_wide(call, input, at),
                              lowest(call, input)),
          call.exprs().index_value(all.place(Position(at).last(all.dims())))};
}

Expr first_place(OpCall& call, const MaxWindows& all, Position p) {
  std::vector<Index> first;
  for (size_t i = 0; i < all.dims(); ++i)
    first.push_back(all.axes[i].first(p[p.size() - all.dims() + i]));
  return call.exprs().index_value(all.place(first));
}

// The first maximum, or the last NaN, tap by tap: one counts when it is larger than all before it;
// the first one inside is the start.
Tap window_maximum(OpCall& call, const TensorValue& input, const MaxWindows& all, Position p) {
  Tap best = {lowest(call, input), first_place(call, all, p)};
  for_each_tap(call, all.windows, [&](Position taps) {
    const Tap tap = load_tap(call, input, all, p, taps);
    const Expr is_better = either(greater(tap.value, best.value), is_nan(tap.value));
    best = {select(is_better, tap.value, best.value), select(is_better, tap.place, best.place)};
  });
  return best;
}

// Where a tap is that is known at run time, or `outside` where it is not in the input.
Expr place_of_tap(OpCall& call, const MaxWindows& all, Position p, Expr tap, Expr outside) {
  ExprContext& exprs = call.exprs();
  std::vector<Expr> taps(all.dims());
  for (size_t i = all.dims(); i-- > 1;) {
    const Expr count = exprs.index_value(all.windows[i].taps);
    const Expr before = apply<ExprOp::kTruncDiv>(tap, count);
    taps[i] = tap - before * count;
    tap = before;
  }
  taps[0] = tap;
  Expr place;
  Expr inside;
  for (size_t i = 0; i < all.dims(); ++i) {
    const Index at = p[p.size() - all.dims() + i];
    const Index start = all.windows[i].position(at, call.indices().constant(0));
    const Expr size = exprs.index_value(all.axes[i].input);
    const Expr coordinate =
        exprs.index_value(start) + taps[i] * static_cast<double>(all.axes[i].dilation);
    const Expr fits = both(greater_equal(coordinate, 0), less(coordinate, size));
    inside = inside.valid() ? both(inside, fits) : fits;
    place = place.valid() ? place * size + coordinate : coordinate;
  }
  return select(inside, place, outside);
}

// The same for windows that are loops: two reductions say where the first maximum and the last NaN
// are.
void set_by_loops(OpCall& call, const TensorValue& input, const MaxWindows& all) {
  ExprContext& exprs = call.exprs();
  std::vector<Index> sizes = call.result().sizes;
  const size_t rank = sizes.size();
  std::vector<size_t> window;
  for (const WindowAxis& axis : all.windows) {
    window.push_back(sizes.size());
    sizes.push_back(axis.taps);
  }
  const auto value_at = [&](Position p) {
    return load_tap(call, input, all, p.first(rank), p.subspan(rank)).value;
  };
  const auto number_of = [&](Position taps) {
    Index number = taps[0];
    for (size_t i = 1; i < all.dims(); ++i) number = number * all.windows[i].taps + taps[i];
    return exprs.index_value(number);
  };
  const TensorValue best = call.reduce(ReductionKind::kMax, sizes, window, false, value_at);
  const TensorValue first = call.reduce(ReductionKind::kArgMax, sizes, window, false, value_at);
  const TensorValue last_nan = call.reduce(
      ReductionKind::kMax, sizes, window, false,
      [&](Position p) { return select(is_nan(value_at(p)), number_of(p.subspan(rank)), -1.0); });
  set_pointwise(call, 0, [&](Position p) { return call.load(best, p); });
  set_pointwise(call, 1, [&](Position p) {
    const Expr nan = call.load(last_nan, p);
    const Expr tap = select(greater_equal(nan, 0), nan, call.load(first, p));
    // Outside is as low as the lowest number inside.
    return place_of_tap(call, all, p, tap, first_place(call, all, p));
  });
}

void set_window_maximum(OpCall& call, const TensorValue& input, const MaxWindows& all) {
  if (!is_unrolled(all.windows)) {
    set_by_loops(call, input, all);
    return;
  }
  set_pointwise(call, 0, [&](Position p) { return window_maximum(call, input, all, p).value; });
  set_pointwise(call, 1, [&](Position p) { return window_maximum(call, input, all, p).place; });
}

template <size_t dims>
Lowered lower_max_pool(OpCall& call) {
  const TensorValue input = call.tensor("self");
  MaxWindows all;
  for (const PoolAxis& axis : pool_axes(call, dims, input.sizes, call.result().sizes)) {
    all.windows.push_back(pool_window(call, axis));
    all.axes.push_back({axis.input, axis.dilation, [axis, &call](Index at) {
                          const Index before = larger(
                              floor_div(-axis.start(at) + (axis.dilation - 1), axis.dilation),
                              call.indices().constant(0));
                          return axis.start(at) + before * axis.dilation;
                        }});
  }
  set_window_maximum(call, input, all);
  return std::nullopt;
}

template <size_t dims>
Lowered lower_adaptive_max_pool(OpCall& call) {
  const TensorValue input = call.tensor("self");
  const auto axes = adaptive_axes(call, dims, input.sizes, call.result().sizes);
  if (!axes) return Unsupported{kUnknownWindows};
  MaxWindows all;
  for (const AdaptiveAxis& axis : *axes) {
    all.windows.push_back(adaptive_window(call, axis));
    all.axes.push_back({axis.input, 1, [axis](Index at) { return axis.start(at); }});
  }
  set_window_maximum(call, input, all);
  return std::nullopt;
}

// Every window adds its gradient where its maximum was.
template <size_t dims>
Lowered lower_backward(OpCall& call) {
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

constexpr LoweringRow kRows[] = {
    {"aten::max_pool2d_with_indices", lower_max_pool<2>},
    {"aten::max_pool3d_with_indices", lower_max_pool<3>},
    {"aten::max_pool2d_with_indices_backward", lower_backward<2>},
    {"aten::max_pool3d_with_indices_backward", lower_backward<3>},
    {"aten::adaptive_max_pool2d", lower_adaptive_max_pool<2>},
    {"aten::adaptive_max_pool3d", lower_adaptive_max_pool<3>},
    {"aten::adaptive_max_pool2d_backward", lower_backward<2>},
    {"aten::adaptive_max_pool3d_backward", lower_backward<3>},
};

}  // namespace

std::span<const LoweringRow> max_pooling_rows() { return kRows; }

}  // namespace litz
