// Activation functions, by the formulas of eager's CPU kernels.
#include <numbers>
#include <vector>

#include "lowering/activation_rows.h"
#include "lowering/join_tables.h"
#include "lowering/view_helpers.h"

namespace litz {
namespace {

Expr rectified(Expr x) { return maximum(x, 0); }
Expr rectified_to_six(Expr x) { return minimum(maximum(x, 0), 6); }
Expr silu(Expr x) { return x / (1 + exponential(-x)); }
Expr mish(Expr x) { return x * hyperbolic_tangent(log_plus_one(exponential(x))); }
Expr hardswish(Expr x) { return x * rectified_to_six(x + 3) / 6; }
Expr hardsigmoid(Expr x) { return rectified_to_six(x + 3) / 6; }

// NaN fails all these comparisons and passes through.
Expr leaky(Expr x, Expr slope) { return select(greater(x, 0), x, x * slope); }

std::optional<Unsupported> lower_leaky_relu(OpCall& call) {
  const Expr slope = precise_number(call, "negative_slope", call.result().dtype);
  set_elementwise(call, {"self"}, [&](std::span<const Expr> x) { return leaky(x[0], slope); });
  return std::nullopt;
}

std::optional<Unsupported> lower_prelu(OpCall& call) {
  set_elementwise(call, {"self", "weight"},
                  [](std::span<const Expr> x) { return leaky(x[0], x[1]); });
  return std::nullopt;
}

Expr exponential_unit(Expr x, Expr negative_factor, Expr positive_factor, Expr input_factor) {
  return select(less(x, 0), exp_minus_one(x * input_factor) * negative_factor, x * positive_factor);
}

std::optional<Unsupported> lower_elu(OpCall& call) {
  const DType dtype = call.result().dtype;
  const Expr scale = precise_number(call, "scale", dtype);
  const Expr alpha = precise_number(call, "alpha", dtype);
  const Expr input_scale = precise_number(call, "input_scale", dtype);
  set_elementwise(call, {"self"}, [&](std::span<const Expr> x) {
    return exponential_unit(x[0], alpha * scale, scale, input_scale);
  });
  return std::nullopt;
}

std::optional<Unsupported> lower_celu(OpCall& call) {
  const std::optional<double> alpha = real_argument(call, "alpha");
  if (!alpha) return Unsupported{"its alpha is symbolic"};
  set_elementwise(call, {"self"}, [&](std::span<const Expr> x) {
    return exponential_unit(x[0], number(x[0], *alpha), number(x[0], 1), number(x[0], 1 / *alpha));
  });
  return std::nullopt;
}

std::optional<Unsupported> lower_selu(OpCall& call) {
  constexpr double kAlpha = 1.6732632423543772848170429916717;
  constexpr double kScale = 1.0507009873554804934193349852946;
  set_elementwise(call, {"self"}, [&](std::span<const Expr> x) {
    const Expr scale = number(x[0], kScale);
    return exponential_unit(x[0], number(x[0], kAlpha) * scale, scale, number(x[0], 1));
  });
  return std::nullopt;
}

Expr gelu(Expr x) { return x * 0.5 * (1 + error_function(x * (1 / std::numbers::sqrt2))); }
Expr tanh_gelu(Expr x) {
  constexpr double kBeta = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const Expr inner = kBeta * (x + 0.044715 * (x * x * x));
  return 0.5 * x * (1 + hyperbolic_tangent(inner));
}

std::optional<Unsupported> lower_gelu(OpCall& call) {
  return call.string("approximate") == "tanh" ? lower_unary<tanh_gelu>(call)
                                              : lower_unary<gelu>(call);
}

std::optional<Unsupported> lower_hardtanh(OpCall& call) {
  const DType dtype = call.result().dtype;
  set_elementwise(call, {"self"}, [&](std::span<const Expr> x) {
    const Expr low = convert(call.scalar_expr(call.scalar("min_val"), dtype), dtype);
    const Expr high = convert(call.scalar_expr(call.scalar("max_val"), dtype), dtype);
    return minimum(maximum(x[0], low), high);
  });
  return std::nullopt;
}

std::optional<Unsupported> lower_softplus(OpCall& call) {
  const DType dtype = call.result().dtype;
  const Expr beta = precise_number(call, "beta", dtype);
  const Expr threshold = precise_number(call, "threshold", dtype);
  set_elementwise(call, {"self"}, [&](std::span<const Expr> x) {
    const Expr scaled = x[0] * beta;
    return select(greater(scaled, threshold), x[0], log_plus_one(exponential(scaled)) / beta);
  });
  return std::nullopt;
}

std::optional<Unsupported> lower_softshrink(OpCall& call) {
  const Expr width = precise_number(call, "lambd", call.result().dtype);
  set_elementwise(call, {"self"}, [&](std::span<const Expr> operands) {
    const Expr x = operands[0];
    const Expr outside = select(less(x, -width), x + width, select(is_nan(x), x, 0.0));
    return select(greater(x, width), x - width, outside);
  });
  return std::nullopt;
}

std::optional<Unsupported> lower_hardshrink(OpCall& call) {
  const DType dtype = call.result().dtype;
  const Expr width = convert(call.scalar_expr(call.scalar("lambd"), dtype), dtype);
  set_elementwise(call, {"self"}, [&](std::span<const Expr> x) {
    return select(both(greater_equal(x[0], -width), less_equal(x[0], width)), 0.0, x[0]);
  });
  return std::nullopt;
}

std::optional<Unsupported> lower_threshold(OpCall& call) {
  const DType dtype = call.result().dtype;
  const Expr limit = precise_number(call, "threshold", dtype);
  const Expr value = precise_number(call, "value", dtype);
  set_elementwise(call, {"self"}, [&](std::span<const Expr> x) {
    return select(less_equal(x[0], limit), value, x[0]);
  });
  return std::nullopt;
}

Expr log_sigmoid(Expr x) { return minimum(x, 0) - log_plus_one(exponential(-absolute(x))); }
Expr log_sigmoid_buffer(Expr x) { return exponential(-absolute(x)); }

std::optional<Unsupported> lower_log_sigmoid_forward(OpCall& call) {
  if (call.device("self") != "cpu") return Unsupported{"its buffer is for the CPU's backward only"};
  set_elementwise(call, {"self"}, [](std::span<const Expr> x) { return log_sigmoid(x[0]); });
  set_elementwise(
      call, {"self"}, [](std::span<const Expr> x) { return log_sigmoid_buffer(x[0]); }, 1);
  return std::nullopt;
}

// The first half of a dimension times the sigmoid of the second.
std::optional<Unsupported> lower_glu(OpCall& call) {
  const TensorValue& self = call.tensor("self");
  const DType dtype = call.result().dtype;
  const size_t dim = dim_argument(call, "dim", self.rank());
  const Index half = call.result().sizes[dim];
  call.set(0, call.pointwise(call.result(), [&](std::span<const Index> position) {
    std::vector<Index> second(position.begin(), position.end());
    second[dim] = second[dim] + half;
    return round_result(convert(call.load(self, position), dtype) *
                            sigmoid(convert(call.load(self, second), dtype)),
                        dtype, dtype);
  }));
  return std::nullopt;
}

constexpr LoweringRow kRows[] = {
    {"aten::relu", lower_unary<rectified>},
    {"aten::relu6", lower_unary<rectified_to_six>},
    {"aten::leaky_relu", lower_leaky_relu},
    {"aten::_prelu_kernel", lower_prelu},
    {"aten::elu", lower_elu},
    {"aten::celu", lower_celu},
    {"aten::selu", lower_selu},
    {"aten::gelu", lower_gelu},
    {"aten::silu", lower_unary<silu>},
    {"aten::mish", lower_unary<mish>},
    {"aten::hardswish", lower_unary<hardswish>},
    {"aten::hardsigmoid", lower_unary<hardsigmoid>},
    {"aten::hardtanh", lower_hardtanh},
    {"aten::softplus", lower_softplus},
    {"aten::softshrink", lower_softshrink},
    {"aten::hardshrink", lower_hardshrink},
    {"aten::threshold", lower_threshold},
    {"aten::log_sigmoid", lower_unary<log_sigmoid>},
    {"aten::log_sigmoid_forward", lower_log_sigmoid_forward},
    {"aten::glu", lower_glu},
};

}  // namespace

std::span<const LoweringRow> activation_lowerings() {
  static const std::vector<LoweringRow> rows = join_tables({kRows, activation_backward_rows()});
  return rows;
}

}  // namespace litz
