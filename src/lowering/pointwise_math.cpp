// Functions of one or two real numbers.
#include <cmath>
#include <numbers>

#include "lowering/pointwise_helpers.h"
#include "lowering/pointwise_rows.h"

namespace litz {
namespace {

// Rounding functions leave integers as they are.
template <ExprOp op>
std::optional<Unsupported> lower_rounding(OpCall& call) {
  set_elementwise(call, {"self"}, [](std::span<const Expr> x) {
    return is_floating(x[0].dtype()) ? apply<op>(x[0]) : x[0];
  });
  return std::nullopt;
}

std::optional<Unsupported> lower_round_to_decimals(OpCall& call) {
  if (!is_floating(call.result().dtype))
    return Unsupported{"eager rounds floating-point tensors to decimals only"};
  const int64_t decimals = call.integer("decimals");
  const double scale = std::pow(10.0, std::abs(static_cast<double>(decimals)));
  set_elementwise(call, {"self"}, [&](std::span<const Expr> x) {
    if (decimals == 0) return apply<ExprOp::kRound>(x[0]);
    if (decimals > 0) return apply<ExprOp::kRound>(x[0] * scale) / scale;
    return apply<ExprOp::kRound>(x[0] / scale) * scale;
  });
  return std::nullopt;
}

Expr fraction(Expr x) { return x - truncate(x); }
Expr sign_of(Expr x) { return x.dtype() == DType::kBool ? x : apply<ExprOp::kSign>(x); }
Expr square(Expr x) { return x * x; }
Expr to_radians(Expr x) { return x * (std::numbers::pi / 180); }
Expr to_degrees(Expr x) { return x * (180 / std::numbers::pi); }

// log(x / (1 - x)), each step rounded, of x pushed into [eps, 1 - eps] where there is an eps.
std::optional<Unsupported> lower_logit(OpCall& call) {
  const DType dtype = call.result().dtype;
  const bool has_eps = !call.is_none("eps");
  set_elementwise(call, {"self"}, [&](std::span<const Expr> operands) {
    Expr x = operands[0];
    if (has_eps) {
      const Expr low = convert(call.scalar_expr(call.scalar("eps"), dtype), dtype);
      const Expr high = rounded(1 - low, dtype);
      x = select(less(x, low), low, select(greater(x, high), high, x));
    }
    return logarithm(rounded(x / rounded(1 - x, dtype), dtype));
  });
  return std::nullopt;
}

// log(exp(a) + exp(b)), where equal infinities give themselves.
Expr log_of_sum(Expr a, Expr b, ExprOp power, double scale) {
  const Expr largest = maximum(a, b);
  const Expr rest = log_plus_one(a.context().unary(power, -absolute(a - b)));
  const Expr sum = largest + (scale == 1 ? rest : rest * scale);
  const Expr is_equal_infinity = both(apply<ExprOp::kIsInf>(a), equal(a, b));
  return select(is_equal_infinity, a, sum);
}
Expr log_add_exp(Expr a, Expr b) { return log_of_sum(a, b, ExprOp::kExp, 1); }
Expr log2_add_exp2(Expr a, Expr b) { return log_of_sum(a, b, ExprOp::kExp2, std::numbers::log2e); }

// a * f(b), f(b) rounded, where a zero wins over everything but NaN.
template <ExprOp f>
std::optional<Unsupported> lower_product_with_log(OpCall& call) {
  const DType dtype = call.result().dtype;
  set_elementwise(call, {"self", "other"}, [&](std::span<const Expr> x) {
    const Expr product = x[0] * rounded(apply<f>(x[1]), dtype);
    return select(is_nan(x[1]), x[1], select(equal(x[0], 0), 0.0, product));
  });
  return std::nullopt;
}

constexpr LoweringRow kRows[] = {
    {"aten::sqrt", lower_unary<apply<ExprOp::kSqrt>>},
    {"aten::rsqrt", lower_unary<apply<ExprOp::kRsqrt>>},
    {"aten::reciprocal", lower_unary<apply<ExprOp::kReciprocal>>},
    {"aten::square", lower_unary<square>},
    {"aten::exp", lower_unary<apply<ExprOp::kExp>>},
    {"aten::exp2", lower_unary<apply<ExprOp::kExp2>>},
    {"aten::special_exp2", lower_unary<apply<ExprOp::kExp2>>},
    {"aten::expm1", lower_unary<apply<ExprOp::kExpm1>>},
    {"aten::log", lower_unary<apply<ExprOp::kLog>>},
    {"aten::log2", lower_unary<apply<ExprOp::kLog2>>},
    {"aten::log10", lower_unary<apply<ExprOp::kLog10>>},
    {"aten::log1p", lower_unary<apply<ExprOp::kLog1p>>},
    {"aten::sin", lower_unary<apply<ExprOp::kSin>>},
    {"aten::cos", lower_unary<apply<ExprOp::kCos>>},
    {"aten::tan", lower_unary<apply<ExprOp::kTan>>},
    {"aten::asin", lower_unary<apply<ExprOp::kAsin>>},
    {"aten::acos", lower_unary<apply<ExprOp::kAcos>>},
    {"aten::atan", lower_unary<apply<ExprOp::kAtan>>},
    {"aten::sinh", lower_unary<apply<ExprOp::kSinh>>},
    {"aten::cosh", lower_unary<apply<ExprOp::kCosh>>},
    {"aten::tanh", lower_unary<apply<ExprOp::kTanh>>},
    {"aten::asinh", lower_unary<apply<ExprOp::kAsinh>>},
    {"aten::acosh", lower_unary<apply<ExprOp::kAcosh>>},
    {"aten::atanh", lower_unary<apply<ExprOp::kAtanh>>},
    {"aten::erf", lower_unary<apply<ExprOp::kErf>>},
    {"aten::erfc", lower_unary<apply<ExprOp::kErfc>>},
    {"aten::erfinv", lower_unary<apply<ExprOp::kErfinv>>},
    {"aten::lgamma", lower_unary<apply<ExprOp::kLgamma>>},
    {"aten::digamma", lower_unary<apply<ExprOp::kDigamma>>},
    {"aten::sigmoid", lower_unary<apply<ExprOp::kSigmoid>>},
    {"aten::logit", lower_logit},
    {"aten::floor", lower_rounding<ExprOp::kFloor>},
    {"aten::ceil", lower_rounding<ExprOp::kCeil>},
    {"aten::trunc", lower_rounding<ExprOp::kTrunc>},
    {"aten::round", lower_rounding<ExprOp::kRound>},
    {"aten::round.decimals", lower_round_to_decimals},
    {"aten::deg2rad", lower_unary<to_radians>},
    {"aten::rad2deg", lower_unary<to_degrees>},
    {"aten::frac", lower_unary<fraction>},
    {"aten::sign", lower_unary<sign_of>},
    {"aten::sgn", lower_unary<sign_of>},
    {"aten::atan2", lower_binary<apply<ExprOp::kAtan2>>},
    {"aten::hypot", lower_binary<apply<ExprOp::kHypot>>},
    {"aten::copysign.Tensor", lower_binary<apply<ExprOp::kCopySign>>},
    {"aten::copysign.Scalar", lower_binary<apply<ExprOp::kCopySign>>},
    {"aten::logaddexp", lower_binary<log_add_exp>},
    {"aten::logaddexp2", lower_binary<log2_add_exp2>},
    {"aten::xlogy.Tensor", lower_product_with_log<ExprOp::kLog>},
    {"aten::xlogy.Scalar_Other", lower_product_with_log<ExprOp::kLog>},
    {"aten::xlogy.Scalar_Self", lower_product_with_log<ExprOp::kLog>},
    {"aten::special_xlog1py", lower_product_with_log<ExprOp::kLog1p>},
    {"aten::special_xlog1py.other_scalar", lower_product_with_log<ExprOp::kLog1p>},
    {"aten::special_xlog1py.self_scalar", lower_product_with_log<ExprOp::kLog1p>},
};

}  // namespace

std::span<const LoweringRow> math_rows() { return kRows; }

}  // namespace litz
