// Gradients of activation functions, by the formulas of eager's CPU kernels.
#include <numbers>

#include "lowering/activation_rows.h"
#include "lowering/view_helpers.h"

namespace litz {
namespace {

// Rows for formulas of the gradient and the forward op's operand.
template <Expr (*formula)(Expr gradient, Expr x)>
std::optional<Unsupported> lower_gradient(OpCall& call) {
  set_elementwise(call, {"grad_output", "self"},
                  [](std::span<const Expr> x) { return formula(x[0], x[1]); });
  return std::nullopt;
}

// Eager's kernel for float16 rounds each step, the one for bfloat16 does not.
std::optional<Unsupported> lower_sigmoid_backward(OpCall& call) {
  const DType step = call.result().dtype == DType::kFloat16
                         ? DType::kFloat16
                         : computation_dtype(call.result().dtype);
  set_elementwise(call, {"grad_output", "output"}, [&](std::span<const Expr> x) {
    return rounded(x[0] * rounded(1 - x[1], step), step) * x[1];
  });
  return std::nullopt;
}

std::optional<Unsupported> lower_tanh_backward(OpCall& call) {
  set_elementwise(call, {"grad_output", "output"}, [](std::span<const Expr> x) {
    return x[0] * multiply_add(-x[1], x[1], number(x[1], 1));
  });
  return std::nullopt;
}

Expr silu_gradient(Expr g, Expr x) {
  const Expr s = 1 / (1 + exponential(-x));
  return g * s * (1 + x * (1 - s));
}
Expr mish_gradient(Expr g, Expr x) {
  const Expr s = 1 / (1 + exponential(-x));
  const Expr t = hyperbolic_tangent(log_plus_one(exponential(x)));
  return g * (t + x * s * (1 - t * t));
}
Expr hardswish_gradient(Expr g, Expr x) {
  return select(less_equal(x, -3), 0.0, select(greater_equal(x, 3), g, g * (x / 3 + 0.5)));
}
Expr hardsigmoid_gradient(Expr g, Expr x) {
  return select(both(greater(x, -3), less(x, 3)), g * (1.0f / 6.0f), 0.0);
}

Expr gelu_gradient(Expr g, Expr x) {
  constexpr double kSlope = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  const Expr cumulative = 0.5 * (1 + error_function(x * (1 / std::numbers::sqrt2)));
  const Expr density = kSlope * exponential(x * x * -0.5);
  return g * (cumulative + x * density);
}
Expr tanh_gelu_gradient(Expr g, Expr x) {
  constexpr double kBeta = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  constexpr double kKappa = 0.044715;
  const Expr squared = x * x;
  const Expr t = hyperbolic_tangent(kBeta * (x + kKappa * (squared * x)));
  const Expr left = 0.5 * x;
  const Expr inner_slope = kBeta * (1 + number(x, 3) * number(x, kKappa) * squared);
  return g * (0.5 * (1 + t) + left * (1 - t * t) * inner_slope);
}
std::optional<Unsupported> lower_gelu_backward(OpCall& call) {
  return call.string("approximate") == "tanh" ? lower_gradient<tanh_gelu_gradient>(call)
                                              : lower_gradient<gelu_gradient>(call);
}

std::optional<Unsupported> lower_leaky_relu_backward(OpCall& call) {
  const Expr slope = precise_number(call, "negative_slope", call.result().dtype);
  set_elementwise(call, {"grad_output", "self"}, [&](std::span<const Expr> x) {
    return select(greater(x[1], 0), x[0], x[0] * slope);
  });
  return std::nullopt;
}

std::optional<Unsupported> lower_prelu_backward(OpCall& call) {
  const auto set = [&](size_t output, Expr (*formula)(Expr g, Expr x, Expr weight)) {
    set_elementwise(
        call, {"grad_output", "self", "weight"},
        [&](std::span<const Expr> x) { return formula(x[0], x[1], x[2]); }, output);
  };
  set(0, [](Expr g, Expr x, Expr weight) { return select(greater(x, 0), g, weight * g); });
  set(1, [](Expr g, Expr x, Expr) { return select(greater(x, 0), 0.0, x * g); });
  return std::nullopt;
}

std::optional<Unsupported> lower_elu_backward(OpCall& call) {
  const DType dtype = call.result().dtype;
  const Expr scale = precise_number(call, "scale", dtype);
  const Expr negative_factor = precise_number(call, "alpha", dtype) * scale;
  const Expr input_scale = precise_number(call, "input_scale", dtype);
  const bool is_result = call.boolean("is_result");
  set_elementwise(call, {"grad_output", "self_or_result"}, [&](std::span<const Expr> x) {
    const Expr negative =
        is_result ? x[0] * input_scale * (x[1] + negative_factor)
                  : x[0] * input_scale * negative_factor * exponential(x[1] * input_scale);
    return select(greater(x[1], 0), x[0] * scale, negative);
  });
  return std::nullopt;
}

std::optional<Unsupported> lower_hardtanh_backward(OpCall& call) {
  const DType dtype = call.result().dtype;
  const Expr low = precise_number(call, "min_val", dtype);
  const Expr high = precise_number(call, "max_val", dtype);
  set_elementwise(call, {"grad_output", "self"}, [&](std::span<const Expr> x) {
    return select(both(greater(x[1], low), less(x[1], high)), x[0], 0.0);
  });
  return std::nullopt;
}

std::optional<Unsupported> lower_softplus_backward(OpCall& call) {
  const DType dtype = call.result().dtype;
  const Expr beta = precise_number(call, "beta", dtype);
  const Expr threshold = precise_number(call, "threshold", dtype);
  set_elementwise(call, {"grad_output", "self"}, [&](std::span<const Expr> x) {
    const Expr scaled = x[1] * beta;
    const Expr power = exponential(scaled);
    return select(greater(scaled, threshold), x[0], x[0] * power / (power + 1));
  });
  return std::nullopt;
}

// Of softshrink and of hardshrink: nothing where the forward op gives zero.
std::optional<Unsupported> shrink_backward(OpCall& call, std::string_view gradient) {
  const DType dtype = call.result().dtype;
  const Expr width = convert(call.scalar_expr(call.scalar("lambd"), dtype), dtype);
  set_elementwise(call, {gradient, "self"}, [&](std::span<const Expr> x) {
    return select(either(less(x[1], -width), greater(x[1], width)), x[0], 0.0);
  });
  return std::nullopt;
}
std::optional<Unsupported> lower_softshrink_backward(OpCall& call) {
  return shrink_backward(call, "grad_output");
}
std::optional<Unsupported> lower_hardshrink_backward(OpCall& call) {
  return shrink_backward(call, "grad_out");
}

std::optional<Unsupported> lower_threshold_backward(OpCall& call) {
  const Expr limit = precise_number(call, "threshold", call.result().dtype);
  set_elementwise(call, {"grad_output", "self"}, [&](std::span<const Expr> x) {
    return select(less_equal(x[1], limit), 0.0, x[0]);
  });
  return std::nullopt;
}

std::optional<Unsupported> lower_log_sigmoid_backward(OpCall& call) {
  if (call.device("self") != "cpu") return Unsupported{"its buffer is the CPU's only"};
  set_elementwise(call, {"grad_output", "self", "buffer"}, [](std::span<const Expr> x) {
    const Expr is_negative = less(x[1], 0);
    const Expr largest = select(is_negative, number(x[1], 1), number(x[1], 0));
    const Expr sign = select(is_negative, number(x[1], 1), number(x[1], -1));
    return (largest - sign * (x[2] / (1 + x[2]))) * x[0];
  });
  return std::nullopt;
}

// The gradient of each half of the dimension; for halves the sigmoid is rounded before it is used.
std::optional<Unsupported> lower_glu_backward(OpCall& call) {
  const TensorValue& self = call.tensor("self");
  const TensorValue& gradient = call.tensor("grad_output");
  const DType dtype = call.result().dtype;
  const size_t dim = dim_argument(call, "dim", self.rank());
  const Index half = gradient.sizes[dim];
  call.set(0, call.pointwise(call.result(), [&](std::span<const Index> position) {
    ExprContext& exprs = call.exprs();
    std::vector<Index> first(position.begin(), position.end());
    first[dim] = mod(position[dim], half);
    std::vector<Index> second = first;
    second[dim] = first[dim] + half;
    const Expr g = convert(call.load(gradient, first), dtype);
    const Expr s =
        convert(exprs.cast(sigmoid(convert(call.load(self, second), dtype)), dtype), dtype);
    const Expr of_second = (1 - s) * s * convert(call.load(self, first), dtype) * g;
    const Expr is_first = less(exprs.index_value(position[dim]), exprs.index_value(half));
    return round_result(select(is_first, s * g, of_second), dtype, dtype);
  }));
  return std::nullopt;
}

std::optional<Unsupported> lower_native_dropout_backward(OpCall& call) {
  const DType dtype = call.result().dtype;
  const Expr scale = precise_number(call, "scale", dtype);
  set_elementwise(call, {"grad_output", "mask"},
                  [&](std::span<const Expr> x) { return x[0] * (x[1] * scale); });
  return std::nullopt;
}

constexpr LoweringRow kRows[] = {
    {"aten::threshold_backward", lower_threshold_backward},
    {"aten::leaky_relu_backward", lower_leaky_relu_backward},
    {"aten::_prelu_kernel_backward", lower_prelu_backward},
    {"aten::elu_backward", lower_elu_backward},
    {"aten::gelu_backward", lower_gelu_backward},
    {"aten::silu_backward", lower_gradient<silu_gradient>},
    {"aten::mish_backward", lower_gradient<mish_gradient>},
    {"aten::hardswish_backward", lower_gradient<hardswish_gradient>},
    {"aten::hardsigmoid_backward", lower_gradient<hardsigmoid_gradient>},
    {"aten::hardtanh_backward", lower_hardtanh_backward},
    {"aten::softplus_backward", lower_softplus_backward},
    {"aten::softshrink_backward", lower_softshrink_backward},
    {"aten::hardshrink_backward", lower_hardshrink_backward},
    {"aten::log_sigmoid_backward", lower_log_sigmoid_backward},
    {"aten::sigmoid_backward", lower_sigmoid_backward},
    {"aten::tanh_backward", lower_tanh_backward},
    {"aten::glu_backward", lower_glu_backward},
    {"aten::native_dropout_backward", lower_native_dropout_backward},
};

}  // namespace

std::span<const LoweringRow> activation_backward_rows() { return kRows; }

}  // namespace litz
