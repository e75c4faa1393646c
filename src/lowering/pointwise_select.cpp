// Choices: where, clamp, minimum and maximum, replacement of values.
#include "lowering/pointwise_helpers.h"
#include "lowering/pointwise_rows.h"

namespace litz {
namespace {

std::optional<Unsupported> lower_where(OpCall& call) {
  const DType dtype = call.result().dtype;
  call.set(0, call.pointwise(call.result(), [&](std::span<const Index> position) {
    ExprContext& exprs = call.exprs();
    const Expr condition = truth(load_operand(call, "condition", position, DType::kBool));
    return exprs.where(condition, exprs.cast(load_operand(call, "self", position, dtype), dtype),
                       exprs.cast(load_operand(call, "other", position, dtype), dtype));
  }));
  return std::nullopt;
}

std::optional<Unsupported> lower_masked_fill(OpCall& call) {
  const DType dtype = call.result().dtype;
  call.set(0, call.pointwise(call.result(), [&](std::span<const Index> position) {
    ExprContext& exprs = call.exprs();
    return exprs.where(load_operand(call, "mask", position, DType::kBool),
                       exprs.cast(load_operand(call, "value", position, dtype), dtype),
                       load_operand(call, "self", position, dtype));
  }));
  return std::nullopt;
}

// Of zeros with different signs eager's vector instructions give the second operand.
Expr larger(Expr a, Expr b) { return maximum(b, a); }
Expr smaller(Expr a, Expr b) { return minimum(b, a); }

// The lower bound first, so that the upper one wins where they cross; NaN anywhere wins over all.
std::optional<Unsupported> lower_clamp_between(OpCall& call, bool has_min, bool has_max) {
  const DType dtype = call.result().dtype;
  call.set(0, call.pointwise(call.result(), [&](std::span<const Index> position) {
    Expr value = load_converted(call, "self", position, dtype);
    if (has_min) {
      const Expr low = load_converted(call, "min", position, dtype);
      value = call.is_tensor("min") ? larger(value, low) : maximum(value, low);
    }
    if (has_max) {
      const Expr high = load_converted(call, "max", position, dtype);
      value = call.is_tensor("max") ? smaller(value, high) : minimum(value, high);
    }
    return round_result(value, dtype, dtype);
  }));
  return std::nullopt;
}
std::optional<Unsupported> lower_clamp(OpCall& call) {
  return lower_clamp_between(call, !call.is_none("min"), !call.is_none("max"));
}
std::optional<Unsupported> lower_clamp_min(OpCall& call) {
  return lower_clamp_between(call, true, false);
}
std::optional<Unsupported> lower_clamp_max(OpCall& call) {
  return lower_clamp_between(call, false, true);
}

// minimum and maximum that prefer a number to NaN.
template <ExprOp op>
Expr prefer_numbers(Expr a, Expr b) {
  return select(is_nan(a), b, select(is_nan(b), a, apply<op>(a, b)));
}

std::optional<Unsupported> lower_nan_to_num(OpCall& call) {
  const DType dtype = call.result().dtype;
  ExprContext& exprs = call.exprs();
  const auto replacement = [&](std::string_view name, Expr otherwise) {
    return call.is_none(name) ? otherwise
                              : convert(call.scalar_expr(call.scalar(name), dtype), dtype);
  };
  set_elementwise(call, {"self"}, [&](std::span<const Expr> operands) {
    const Expr x = operands[0];
    if (!is_floating(dtype)) return x;
    const Expr largest = exprs.cast(exprs.constant(largest_finite(dtype)), x.dtype());
    const Expr infinite = apply<ExprOp::kIsInf>(x);
    const Expr finite = select(
        infinite,
        select(greater(x, 0), replacement("posinf", largest), replacement("neginf", -largest)), x);
    return select(is_nan(x), replacement("nan", number(x, 0)), finite);
  });
  return std::nullopt;
}

// 0 below zero, 1 above, the second operand at zero, 0 for NaN.
std::optional<Unsupported> lower_heaviside(OpCall& call) {
  set_elementwise(call, {"self", "values"}, [](std::span<const Expr> x) {
    const Expr step = x[0].context().cast(greater(x[0], 0), x[0].dtype());
    return select(equal(x[0], 0), x[1], step);
  });
  return std::nullopt;
}

std::optional<Unsupported> lower_nextafter(OpCall& call) {
  if (is_half(call.result().dtype))
    return Unsupported{"the neighbours of half-precision numbers are not float32's"};
  return lower_binary<apply<ExprOp::kNextAfter>>(call);
}

constexpr LoweringRow kRows[] = {
    {"aten::where.self", lower_where},
    {"aten::where.ScalarSelf", lower_where},
    {"aten::where.ScalarOther", lower_where},
    {"aten::where.Scalar", lower_where},
    {"aten::masked_fill.Scalar", lower_masked_fill},
    {"aten::masked_fill.Tensor", lower_masked_fill},
    {"aten::clamp", lower_clamp},
    {"aten::clamp.Tensor", lower_clamp},
    {"aten::clamp_min", lower_clamp_min},
    {"aten::clamp_min.Tensor", lower_clamp_min},
    {"aten::clamp_max", lower_clamp_max},
    {"aten::clamp_max.Tensor", lower_clamp_max},
    {"aten::maximum", lower_binary<larger>},
    {"aten::minimum", lower_binary<smaller>},
    {"aten::max.other", lower_binary<larger>},
    {"aten::min.other", lower_binary<smaller>},
    {"aten::fmax", lower_binary<prefer_numbers<ExprOp::kMax>>},
    {"aten::fmin", lower_binary<prefer_numbers<ExprOp::kMin>>},
    {"aten::nan_to_num", lower_nan_to_num},
    {"aten::heaviside", lower_heaviside},
    {"aten::nextafter", lower_nextafter},
};

}  // namespace

std::span<const LoweringRow> selection_rows() { return kRows; }

}  // namespace litz
