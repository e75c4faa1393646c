// Averages of windows over the last two dimensions. Where a window may leave its tensor the loads
// are masked.
#include <array>

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
  set_window_sum(
      call, pool_window(call, axes[0]), pool_window(call, axes[1]),
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

Expr adaptive_count(OpCall& call, const std::array<AdaptiveAxis, 2>& axes, Index y, Index x,
                    DType dtype) {
  return index_as(call, (axes[0].end(y) - axes[0].start(y)) * (axes[1].end(x) - axes[1].start(x)),
                  dtype);
}

Lowered lower_adaptive_avg_pool(OpCall& call) {
  const TensorValue input = call.tensor("self");
  if (!is_floating(input.dtype)) return Unsupported{"the input is not floating-point"};
  const auto axes = adaptive_axes(call, input.sizes, call.result().sizes);
  if (!axes) return Unsupported{kUnknownWindows};
  set_window_sum(
      call, adaptive_window(call, (*axes)[0]), adaptive_window(call, (*axes)[1]),
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
    {"aten::avg_pool2d", lower_avg_pool},
    {"aten::avg_pool2d_backward", lower_avg_pool_backward},
    {"aten::_adaptive_avg_pool2d", lower_adaptive_avg_pool},
    {"aten::adaptive_avg_pool2d", lower_adaptive_avg_pool},
    {"aten::_adaptive_avg_pool2d_backward", lower_adaptive_avg_pool_backward},
};

}  // namespace

std::span<const LoweringRow> average_pooling_rows() { return kRows; }

}  // namespace litz
