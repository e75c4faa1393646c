// Averages of windows over the last two or three dimensions. Where a window may leave its tensor
// the loads are masked.
#include "lowering/pool_axes.h"
#include "lowering/pooling_rows.h"
#include "lowering/reduction_helpers.h"

namespace litz {
namespace {

using Lowered = std::optional<Unsupported>;
using Position = std::span<const Index>;

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
  Expr at(OpCall& call, std::span<const PoolAxis> axes, Position p, DType dtype) const {
    if (fixed) return call.exprs().constant(dtype, static_cast<double>(*fixed));
    Index count = call.indices().constant(1);
    for (size_t i = 0; i < axes.size(); ++i)
      count = count * taps(call, axes[i], p[p.size() - axes.size() + i]);
    return index_as(call, count, dtype);
  }
};

Divisor read_divisor(const OpCall& call) {
  Divisor divisor;
  if (!call.is_none("divisor_override")) divisor.fixed = call.integer("divisor_override");
  divisor.counts_padding = call.boolean("count_include_pad");
  return divisor;
}

// One window for each of the axes.
template <class Axis, class Make>
std::vector<WindowAxis> windows_of(const std::vector<Axis>& axes, const Make& make) {
  std::vector<WindowAxis> windows;
  for (const Axis& axis : axes) windows.push_back(make(axis));
  return windows;
}

template <size_t dims>
Lowered lower_avg_pool(OpCall& call) {
  const TensorValue input = call.tensor("self");
  if (!is_floating(input.dtype)) return Unsupported{"the input is not floating-point"};
  const std::vector<PoolAxis> axes = pool_axes(call, dims, input.sizes, call.result().sizes);
  const Divisor divisor = read_divisor(call);
  set_window_sum(
      call, windows_of(axes, [&](const PoolAxis& axis) { return pool_window(call, axis); }),
      [&](Position other) { return load_wide(call, input, other); },
      [&](Position p, Expr sum) { return sum / divisor.at(call, axes, p, sum.dtype()); });
  return std::nullopt;
}

// An element of the input gets from every window that it is in. Counted from the last one, the
// windows that begin at most kernel - 1 before it.
template <size_t dims>
Lowered lower_avg_pool_backward(OpCall& call) {
  const TensorValue grad = call.tensor("grad_output");
  if (!is_floating(grad.dtype)) return Unsupported{"the gradient is not floating-point"};
  const std::vector<PoolAxis> axes = pool_axes(call, dims, call.result().sizes, grad.sizes);
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
      call, windows_of(axes, window),
      [&](Position other) {
        const Expr value = load_wide(call, grad, other);
        return value / divisor.at(call, axes, other, value.dtype());
      },
      [](Position, Expr sum) { return sum; });
  return std::nullopt;
}

// ---- adaptive averages ----

Expr adaptive_count(OpCall& call, std::span<const AdaptiveAxis> axes, Position p, DType dtype) {
  Index count = call.indices().constant(1);
  for (size_t i = 0; i < axes.size(); ++i) {
    const Index at = p[p.size() - axes.size() + i];
    count = count * (axes[i].end(at) - axes[i].start(at));
  }
  return index_as(call, count, dtype);
}

template <size_t dims>
Lowered lower_adaptive_avg_pool(OpCall& call) {
  const TensorValue input = call.tensor("self");
  if (!is_floating(input.dtype)) return Unsupported{"the input is not floating-point"};
  const auto axes = adaptive_axes(call, dims, input.sizes, call.result().sizes);
  if (!axes) return Unsupported{kUnknownWindows};
  set_window_sum(
      call,
      windows_of(*axes, [&](const AdaptiveAxis& axis) { return adaptive_window(call, axis); }),
      [&](Position other) { return load_wide(call, input, other); },
      [&](Position p, Expr sum) { return sum / adaptive_count(call, *axes, p, sum.dtype()); });
  return std::nullopt;
}

template <size_t dims>
Lowered lower_adaptive_avg_pool_backward(OpCall& call) {
  const TensorValue grad = call.tensor("grad_output");
  if (!is_floating(grad.dtype)) return Unsupported{"the gradient is not floating-point"};
  const auto axes = adaptive_axes(call, dims, call.result().sizes, grad.sizes);
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
      call, windows_of(*axes, window),
      [&](Position other) {
        const Expr value = load_wide(call, grad, other);
        return value / adaptive_count(call, *axes, other, value.dtype());
      },
      [](Position, Expr sum) { return sum; });
  return std::nullopt;
}

constexpr LoweringRow kRows[] = {
    {"aten::avg_pool2d", lower_avg_pool<2>},
    {"aten::avg_pool3d", lower_avg_pool<3>},
    {"aten::avg_pool2d_backward", lower_avg_pool_backward<2>},
    {"aten::avg_pool3d_backward", lower_avg_pool_backward<3>},
    {"aten::_adaptive_avg_pool2d", lower_adaptive_avg_pool<2>},
    {"aten::adaptive_avg_pool2d", lower_adaptive_avg_pool<2>},
    {"aten::_adaptive_avg_pool3d", lower_adaptive_avg_pool<3>},
    {"aten::adaptive_avg_pool3d", lower_adaptive_avg_pool<3>},
    {"aten::_adaptive_avg_pool2d_backward", lower_adaptive_avg_pool_backward<2>},
    {"aten::_adaptive_avg_pool3d_backward", lower_adaptive_avg_pool_backward<3>},
};

}  // namespace

std::span<const LoweringRow> average_pooling_rows() { return kRows; }

}  // namespace litz
