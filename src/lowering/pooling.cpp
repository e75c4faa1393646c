// Pools over the last two dimensions. Where a window may leave its tensor the loads are masked.
#include <algorithm>
#include <array>
#include <string>

#include "lowering/index_helpers.h"
#include "lowering/pooling_rows.h"
#include "lowering/reduction_helpers.h"
#include "lowering/window.h"

namespace litz {
namespace {

using Lowered = std::optional<Unsupported>;
using Position = std::span<const Index>;

// How a window moves along one axis of the input.
struct PoolAxis {
  int64_t kernel;
  int64_t stride;
  int64_t padding;
  int64_t dilation;
  Index input;
  Index output;

  Index start(Index at) const { return at * stride - padding; }
  Index tap(Index at, Index number) const { return start(at) + number * dilation; }
};

// An argument of one or two numbers; `fallback` where it is empty.
std::array<int64_t, 2> pair(const OpCall& call, std::string_view name,
                            std::array<int64_t, 2> fallback) {
  if (call.node().schema->find(name) < 0) return fallback;
  const std::vector<int64_t> given = call.integer_list(name);
  if (given.empty()) return fallback;
  return {given.front(), given.back()};
}

std::array<PoolAxis, 2> pool_axes(const OpCall& call, std::span<const Index> input,
                                  std::span<const Index> output) {
  const auto kernel = pair(call, "kernel_size", {1, 1});
  const auto stride = pair(call, "stride", kernel);
  const auto padding = pair(call, "padding", {0, 0});
  const auto dilation = pair(call, "dilation", {1, 1});
  std::array<PoolAxis, 2> axes;
  for (size_t i = 0; i < 2; ++i) {
    axes[i] = {kernel[i],
               stride[i],
               padding[i],
               dilation[i],
               input[input.size() - 2 + i],
               output[output.size() - 2 + i]};
  }
  return axes;
}

// ---- max ----

// The first maximum of a window, or the last NaN, and where it is in the plane. A tap counts when
// it is larger than all before it; the first one inside is the start.
struct WindowMaximum {
  Expr value;
  Expr place;
};

// The first tap of a window that is not before the input.
Index first_tap(OpCall& call, const PoolAxis& axis, Index at) {
  const Index zero = call.indices().constant(0);
  const Index before =
      larger(floor_div(-axis.start(at) + (axis.dilation - 1), axis.dilation), zero);
  return axis.start(at) + before * axis.dilation;
}

WindowMaximum window_maximum(OpCall& call, const TensorValue& input,
                             const std::array<PoolAxis, 2>& axes, Position p) {
  ExprContext& exprs = call.exprs();
  const size_t row = p.size() - 2;
  const Index width = axes[1].input;
  const auto place_of = [&](Index y, Index x) { return exprs.index_value(y * width + x); };
  const Expr lowest = exprs.constant(identity(ReductionKind::kMax, computation_dtype(input.dtype)));
  WindowMaximum best = {
      lowest, place_of(first_tap(call, axes[0], p[row]), first_tap(call, axes[1], p[row + 1]))};
  std::vector<Index> at(p.begin(), p.end());
  for (int64_t i = 0; i < axes[0].kernel; ++i) {
    for (int64_t j = 0; j < axes[1].kernel; ++j) {
      at[row] = axes[0].tap(p[row], call.indices().constant(i));
      at[row + 1] = axes[1].tap(p[row + 1], call.indices().constant(j));
      const Expr inside = conjunction(in_range(call, at[row], axes[0].input),
                                      in_range(call, at[row + 1], axes[1].input));
      const Expr value = exprs.masked(inside, load_wide(call, input, at), lowest);
      const Expr is_better = either(greater(value, best.value), is_nan(value));
      best = {select(is_better, value, best.value),
              select(is_better, place_of(at[row], at[row + 1]), best.place)};
    }
  }
  return best;
}

Lowered lower_max_pool(OpCall& call) {
  const TensorValue input = call.tensor("self");
  const std::array<PoolAxis, 2> axes = pool_axes(call, input.sizes, call.result().sizes);
  if (axes[0].kernel * axes[1].kernel > kUnrolledTaps)
    return Unsupported{"the window has more than " + std::to_string(kUnrolledTaps) + " taps"};
  set_pointwise(call, 0, [&](Position p) { return window_maximum(call, input, axes, p).value; });
  set_pointwise(call, 1, [&](Position p) { return window_maximum(call, input, axes, p).place; });
  return std::nullopt;
}

// Every window adds its gradient where its maximum was.
Lowered lower_max_pool_backward(OpCall& call) {
  const TensorValue grad = call.tensor("grad_output");
  const TensorValue indices = call.tensor("indices");
  const std::vector<Index>& sizes = call.result().sizes;
  const std::vector<Index> plane(sizes.end() - 2, sizes.end());
  const Index count = plane[0] * plane[1];
  const auto zero = [&](Position) { return call.exprs().constant(call.result().dtype, 0); };
  set_scatter(call, zero, StoreMode::kAdd, grad.sizes, [&](Position p) {
    OpCall::Store store;
    store.target.assign(p.begin(), p.end() - 2);
    for (Index coordinate : delinearize(call.indices().indirect(0, count), plane)) {
      store.target.push_back(coordinate);
    }
    store.runtime_indices = {load_index(call, indices, p, count, Negative::kIsError)};
    store.value = call.load(grad, p);
    return store;
  });
  return std::nullopt;
}

// ---- averages ----

// By how much the sum of a window is divided.
struct Divisor {
  std::optional<int64_t> fixed;
  bool counts_padding;

  // Taps of the window at `at` along one axis.
  Index taps(OpCall& call, const PoolAxis& axis, Index at) const {
    const Index start = axis.start(at);
    const Index end = smaller(start + axis.kernel, axis.input + axis.padding);
    if (counts_padding) return end - start;
    return smaller(end, axis.input) - larger(start, call.indices().constant(0));
  }
  Expr at(OpCall& call, const std::array<PoolAxis, 2>& axes, Index y, Index x, DType dtype) const {
    if (fixed) return call.exprs().constant(dtype, static_cast<double>(*fixed));
    return index_as(call, taps(call, axes[0], y) * taps(call, axes[1], x), dtype);
  }
};

Divisor read_divisor(const OpCall& call) {
  Divisor divisor;
  if (!call.is_none("divisor_override")) divisor.fixed = call.integer("divisor_override");
  divisor.counts_padding = call.boolean("count_include_pad");
  return divisor;
}

Lowered lower_avg_pool(OpCall& call) {
  const TensorValue input = call.tensor("self");
  if (!is_floating(input.dtype)) return Unsupported{"the input is not floating-point"};
  const std::array<PoolAxis, 2> axes = pool_axes(call, input.sizes, call.result().sizes);
  const Divisor divisor = read_divisor(call);
  const auto window = [&](const PoolAxis& axis) {
    return WindowAxis{call.indices().constant(axis.kernel),
                      [axis](Index at, Index tap) { return axis.tap(at, tap); },
                      [axis, &call](Index at, Index tap) {
                        return in_range(call, axis.tap(at, tap), axis.input);
                      }};
  };
  set_window_sum(
      call, window(axes[0]), window(axes[1]),
      [&](Position other) { return load_wide(call, input, other); },
      [&](Position p, Expr sum) {
        return sum / divisor.at(call, axes, p[p.size() - 2], p.back(), sum.dtype());
      });
  return std::nullopt;
}

// An element of the input gets from every window that it is in. Counted from the last one, the
// windows that begin at most kernel - 1 before it.
Lowered lower_avg_pool_backward(OpCall& call) {
  const TensorValue grad = call.tensor("grad_output");
  if (!is_floating(grad.dtype)) return Unsupported{"the gradient is not floating-point"};
  const std::array<PoolAxis, 2> axes = pool_axes(call, call.result().sizes, grad.sizes);
  const Divisor divisor = read_divisor(call);
  const auto window = [&](const PoolAxis& axis) {
    const auto position = [axis](Index at, Index tap) {
      return floor_div(at + axis.padding, axis.stride) - tap;
    };
    return WindowAxis{call.indices().constant((axis.kernel + axis.stride - 1) / axis.stride),
                      position, [axis, position, &call](Index at, Index tap) {
                        const Index window = position(at, tap);
                        return conjunction(in_range(call, window, axis.output),
                                           is_less(call, at, axis.start(window) + axis.kernel));
                      }};
  };
  set_window_sum(
      call, window(axes[0]), window(axes[1]),
      [&](Position other) {
        const Expr value = load_wide(call, grad, other);
        return value / divisor.at(call, axes, other[other.size() - 2], other.back(), value.dtype());
      },
      [](Position, Expr sum) { return sum; });
  return std::nullopt;
}

// ---- adaptive averages ----

// Output o averages the inputs from floor(o * input / output) up to ceil((o + 1) * input / output).
struct AdaptiveAxis {
  Index input;
  Index output;
  Index taps;     // of the largest window
  Index windows;  // that one input is in, at most

  Index start(Index at) const { return floor_div(at * input, output); }
  Index end(Index at) const { return ceil_div((at + 1) * input, output); }
};

// nullopt where the sizes are neither known nor multiples.
std::optional<AdaptiveAxis> adaptive_axis(const OpCall& call, Index input, Index output) {
  IndexContext& indices = call.indices();
  if (const std::optional<Index> exact = exact_div(input, output))
    return AdaptiveAxis{input, output, *exact, indices.constant(1)};
  if (!input.is_constant() || !output.is_constant()) return std::nullopt;
  const int64_t n = input.constant();
  const int64_t m = output.constant();
  int64_t taps = 0;
  std::vector<int64_t> windows(static_cast<size_t>(n), 0);
  int64_t most = 0;
  for (int64_t o = 0; o < m; ++o) {
    const int64_t start = o * n / m;
    const int64_t end = ((o + 1) * n + m - 1) / m;
    taps = std::max(taps, end - start);
    for (int64_t i = start; i < end; ++i) most = std::max(most, ++windows[static_cast<size_t>(i)]);
  }
  return AdaptiveAxis{input, output, indices.constant(taps), indices.constant(most)};
}

std::optional<std::array<AdaptiveAxis, 2>> adaptive_axes(const OpCall& call,
                                                         std::span<const Index> input,
                                                         std::span<const Index> output) {
  if (is_empty(call, input) || is_empty(call, output)) return std::nullopt;
  std::array<AdaptiveAxis, 2> axes;
  for (size_t i = 0; i < 2; ++i) {
    const std::optional<AdaptiveAxis> axis =
        adaptive_axis(call, input[input.size() - 2 + i], output[output.size() - 2 + i]);
    if (!axis) return std::nullopt;
    axes[i] = *axis;
  }
  return axes;
}

Expr adaptive_count(OpCall& call, const std::array<AdaptiveAxis, 2>& axes, Index y, Index x,
                    DType dtype) {
  return index_as(call, (axes[0].end(y) - axes[0].start(y)) * (axes[1].end(x) - axes[1].start(x)),
                  dtype);
}

constexpr const char* kUnknownWindows = "its windows depend on symbolic sizes, or are empty";

Lowered lower_adaptive_avg_pool(OpCall& call) {
  const TensorValue input = call.tensor("self");
  if (!is_floating(input.dtype)) return Unsupported{"the input is not floating-point"};
  const auto axes = adaptive_axes(call, input.sizes, call.result().sizes);
  if (!axes) return Unsupported{kUnknownWindows};
  const auto window = [&](const AdaptiveAxis& axis) {
    const auto position = [axis](Index at, Index tap) { return axis.start(at) + tap; };
    return WindowAxis{axis.taps, position, [axis, position, &call](Index at, Index tap) {
                        return is_less(call, position(at, tap), axis.end(at));
                      }};
  };
  set_window_sum(
      call, window((*axes)[0]), window((*axes)[1]),
      [&](Position other) { return load_wide(call, input, other); },
      [&](Position p, Expr sum) {
        return sum / adaptive_count(call, *axes, p[p.size() - 2], p.back(), sum.dtype());
      });
  return std::nullopt;
}

Lowered lower_adaptive_avg_pool_backward(OpCall& call) {
  const TensorValue grad = call.tensor("grad_output");
  if (!is_floating(grad.dtype)) return Unsupported{"the gradient is not floating-point"};
  const auto axes = adaptive_axes(call, call.result().sizes, grad.sizes);
  if (!axes) return Unsupported{kUnknownWindows};
  const auto window = [&](const AdaptiveAxis& axis) {
    const auto position = [axis](Index at, Index tap) {
      return floor_div(at * axis.output, axis.input) + tap;
    };
    return WindowAxis{axis.windows, position, [axis, position, &call](Index at, Index tap) {
                        const Index o = position(at, tap);
                        const Expr in_window = conjunction(is_less(call, axis.start(o), at + 1),
                                                           is_less(call, at, axis.end(o)));
                        return conjunction(in_window, is_less(call, o, axis.output));
                      }};
  };
  set_window_sum(
      call, window((*axes)[0]), window((*axes)[1]),
      [&](Position other) {
        const Expr value = load_wide(call, grad, other);
        return value /
               adaptive_count(call, *axes, other[other.size() - 2], other.back(), value.dtype());
      },
      [](Position, Expr sum) { return sum; });
  return std::nullopt;
}

constexpr LoweringRow kRows[] = {
    {"aten::max_pool2d_with_indices", lower_max_pool},
    {"aten::max_pool2d_with_indices_backward", lower_max_pool_backward},
    {"aten::avg_pool2d", lower_avg_pool},
    {"aten::avg_pool2d_backward", lower_avg_pool_backward},
    {"aten::_adaptive_avg_pool2d", lower_adaptive_avg_pool},
    {"aten::adaptive_avg_pool2d", lower_adaptive_avg_pool},
    {"aten::_adaptive_avg_pool2d_backward", lower_adaptive_avg_pool_backward},
};

}  // namespace

std::span<const LoweringRow> pooling_rows() { return kRows; }

}  // namespace litz
