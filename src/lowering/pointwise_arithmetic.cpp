// Sums, products, quotients, powers, bits.
#include <cmath>

#include "lowering/pointwise_helpers.h"
#include "lowering/pointwise_rows.h"

namespace litz {
namespace {

Expr product_of(Expr a, Expr b) { return a.dtype() == DType::kBool ? both(a, b) : a * b; }

// a + factor * b. Eager's kernel is a fused multiply-add; bools have or and and.
Expr sum_of(Expr a, Expr b, Expr factor) {
  if (a.dtype() == DType::kBool) return either(a, both(factor, b));
  return multiply_add(factor, b, a);
}

// True where the number is the integer; false for symbols.
bool is_number(const Argument& number, double value) {
  if (const auto* integer = std::get_if<int64_t>(&number.v))
    return static_cast<double>(*integer) == value;
  if (const auto* real = std::get_if<double>(&number.v)) return *real == value;
  return number.holds<bool>() && number.get<bool>() == (value == 1) && (value == 1 || value == 0);
}

// left + alpha * right, or left - alpha * right.
template <bool subtract>
std::optional<Unsupported> lower_sum(OpCall& call, std::string_view left, std::string_view right) {
  const DType dtype = call.result().dtype;
  if (subtract && dtype == DType::kBool) return Unsupported{"eager does not subtract bools"};
  const bool is_plain = is_number(call.scalar("alpha"), 1);
  set_elementwise(call, {left, right}, [&](std::span<const Expr> x) {
    if (is_plain) {
      if constexpr (subtract) return x[0] - x[1];
      return dtype == DType::kBool ? either(x[0], x[1]) : x[0] + x[1];
    }
    const Expr alpha = convert(call.scalar_expr(call.scalar("alpha"), dtype), dtype);
    return sum_of(x[0], x[1], subtract ? -alpha : alpha);
  });
  return std::nullopt;
}

std::optional<Unsupported> lower_add(OpCall& call) {
  return lower_sum<false>(call, "self", "other");
}
std::optional<Unsupported> lower_sub(OpCall& call) {
  return lower_sum<true>(call, "self", "other");
}
std::optional<Unsupported> lower_rsub(OpCall& call) {
  return lower_sum<true>(call, "other", "self");
}

// Ops whose kernel for halves keeps a second operand of one element in float32.
template <Expr (*formula)(Expr, Expr)>
std::optional<Unsupported> lower_precise_binary(OpCall& call) {
  const DType dtype = call.result().dtype;
  call.set(0, call.pointwise(call.result(), [&](std::span<const Index> position) {
    return round_result(formula(load_converted(call, "self", position, dtype),
                                load_precise(call, "other", position, dtype)),
                        dtype, dtype);
  }));
  return std::nullopt;
}

Expr quotient_of(Expr a, Expr b) { return a / b; }
Expr product_with_reciprocal(Expr a, Expr b) { return a * (number(b, 1) / b); }
Expr truncated_product_with_reciprocal(Expr a, Expr b) {
  return truncate(product_with_reciprocal(a, b));
}

// Eager's kernels for CUDA multiply by the reciprocal of a number, which rounds once more.
bool divides_by_number_on_cuda(const OpCall& call) {
  const TensorMeta& result = call.result();
  if (!result.device.starts_with("cuda") || !is_floating(result.dtype)) return false;
  return !call.is_tensor("other") ||
         (call.tensor("other").sizes.empty() && call.device("other") == "cpu");
}

std::optional<Unsupported> lower_quotient(OpCall& call) {
  return divides_by_number_on_cuda(call) ? lower_precise_binary<product_with_reciprocal>(call)
                                         : lower_precise_binary<quotient_of>(call);
}

// A division, which eager refuses for an integer zero.
template <ExprOp op>
Expr divide(Expr a, Expr b) {
  if (is_floating(b.dtype())) return apply<op>(a, b);
  return apply<op>(a, apply<ExprOp::kCheckDivisor>(b));
}

// Whether the second operand counts as a scalar for eager's kernels.
bool is_precise(const OpCall& call) {
  if (!call.is_tensor("other")) return true;
  for (Index size : call.tensor("other").sizes) {
    if (!size.is_constant(1)) return false;
  }
  return true;
}

// a / b rounded toward zero: for halves the quotient is rounded before, unless b is a scalar.
std::optional<Unsupported> lower_truncated_quotient(OpCall& call) {
  const DType dtype = call.result().dtype;
  if (divides_by_number_on_cuda(call))
    return lower_precise_binary<truncated_product_with_reciprocal>(call);
  if (!is_half(dtype) || is_precise(call))
    return lower_precise_binary<divide<ExprOp::kTruncDiv>>(call);
  set_elementwise(call, {"self", "other"},
                  [&](std::span<const Expr> x) { return truncate(rounded(x[0] / x[1], dtype)); });
  return std::nullopt;
}

// floor(a / b) of halves in the steps of eager's kernel, each of which rounds.
Expr floor_quotient_of_halves(Expr a, Expr b, DType dtype) {
  const Expr rest = rounded(apply<ExprOp::kFmod>(a, b), dtype);
  Expr exact = rounded(rounded(a - rest, dtype) / b, dtype);
  const Expr is_above = both(not_equal(rest, 0), apply<ExprOp::kNe>(less(b, 0), less(rest, 0)));
  exact = select(is_above, rounded(exact - 1, dtype), exact);
  const Expr below = apply<ExprOp::kFloor>(exact);
  const Expr nearest =
      select(greater(rounded(exact - below, dtype), 0.5), rounded(below + 1, dtype), below);
  const Expr quotient = rounded(a / b, dtype);
  const Expr signed_zero = apply<ExprOp::kCopySign>(number(a, 0), quotient);
  return select(equal(b, 0), quotient, select(equal(exact, 0), signed_zero, nearest));
}

std::optional<Unsupported> lower_floor_quotient(OpCall& call) {
  const DType dtype = call.result().dtype;
  if (dtype == DType::kBool) return Unsupported{"eager does not divide bools"};
  if (!is_half(dtype) || is_precise(call))
    return lower_precise_binary<divide<ExprOp::kFloorDiv>>(call);
  set_elementwise(call, {"self", "other"}, [&](std::span<const Expr> x) {
    return floor_quotient_of_halves(x[0], x[1], dtype);
  });
  return std::nullopt;
}

std::optional<Unsupported> lower_quotient_with_mode(OpCall& call) {
  if (call.is_none("rounding_mode")) return lower_quotient(call);
  if (call.result().dtype == DType::kBool) return Unsupported{"eager does not divide bools"};
  return call.string("rounding_mode") == "floor" ? lower_floor_quotient(call)
                                                 : lower_truncated_quotient(call);
}

template <ExprOp op>
std::optional<Unsupported> lower_remainder(OpCall& call) {
  if (call.result().dtype == DType::kBool) return Unsupported{"eager has no such op for bools"};
  return lower_binary<divide<op>>(call);
}
template <ExprOp op>
std::optional<Unsupported> lower_number_unary(OpCall& call) {
  if (call.result().dtype == DType::kBool) return Unsupported{"eager has no such op for bools"};
  return lower_unary<apply<op>>(call);
}

// ---- powers ----

// Eager's kernels compute small exponents by other means, in bfloat16 rounding each step; the one
// for float16 does not.
std::optional<Expr> special_power(Expr x, const Argument& exponent, DType dtype) {
  if (is_number(exponent, 2)) return x * x;
  if (dtype == DType::kFloat16) return std::nullopt;
  if (is_number(exponent, 3)) return rounded(x * x, dtype) * x;
  if (!is_floating(dtype)) return std::nullopt;
  if (is_number(exponent, -2)) return apply<ExprOp::kReciprocal>(rounded(x * x, dtype));
  if (is_number(exponent, 0.5)) return square_root(x);
  if (is_number(exponent, -0.5)) return apply<ExprOp::kRsqrt>(x);
  if (is_number(exponent, -1)) return apply<ExprOp::kReciprocal>(x);
  return std::nullopt;
}

std::optional<Unsupported> lower_power_of_tensor(OpCall& call) {
  const DType dtype = call.result().dtype;
  const Argument exponent = call.scalar("exponent");
  const bool is_zero = is_number(exponent, 0);
  const bool is_one = is_number(exponent, 1);
  if (dtype == DType::kBool && !is_zero && !is_one)
    return Unsupported{"eager has no such op for bools"};
  if (is_integral(dtype) && !(exponent.holds<int64_t>() && exponent.get<int64_t>() >= 0) &&
      !exponent.holds<bool>())
    return Unsupported{"eager checks at run time that an integer's exponent is not negative"};
  set_elementwise(call, {"self"}, [&](std::span<const Expr> x) {
    if (is_zero) return x[0].context().constant_int(x[0].dtype(), 1);
    if (is_one) return x[0];
    if (const std::optional<Expr> special = special_power(x[0], exponent, dtype)) return *special;
    return apply<ExprOp::kPow>(x[0], convert(call.scalar_expr(exponent, dtype), dtype));
  });
  return std::nullopt;
}

std::optional<Unsupported> lower_power_of_number(OpCall& call) {
  const Argument base = call.scalar("self");
  if (call.result().dtype == DType::kBool) return Unsupported{"eager has no such op for bools"};
  set_elementwise(call, {"self", "exponent"}, [&](std::span<const Expr> x) {
    if (is_number(base, 1)) return x[0];
    return apply<ExprOp::kPow>(x[0], x[1]);
  });
  return std::nullopt;
}

std::optional<Unsupported> lower_power_of_tensors(OpCall& call) {
  if (call.result().dtype == DType::kBool) return Unsupported{"eager has no such op for bools"};
  set_elementwise(call, {"self", "exponent"},
                  [](std::span<const Expr> x) { return apply<ExprOp::kPow>(x[0], x[1]); });
  return std::nullopt;
}

// ---- fused forms ----

// self + value * a * b, the last product and the sum fused.
std::optional<Unsupported> lower_addcmul(OpCall& call) {
  const DType dtype = call.result().dtype;
  if (dtype == DType::kBool) return Unsupported{"eager has no such op for bools"};
  set_elementwise(call, {"self", "tensor1", "tensor2"}, [&](std::span<const Expr> x) {
    return multiply_add(precise_number(call, "value", dtype) * x[1], x[2], x[0]);
  });
  return std::nullopt;
}

std::optional<Unsupported> lower_addcdiv(OpCall& call) {
  const DType dtype = call.result().dtype;
  if (!is_floating(dtype)) return Unsupported{"eager divides floating-point tensors only"};
  set_elementwise(call, {"self", "tensor1", "tensor2"}, [&](std::span<const Expr> x) {
    return x[0] + precise_number(call, "value", dtype) * x[1] / x[2];
  });
  return std::nullopt;
}

// a * b + c, rounded once.
std::optional<Unsupported> lower_fma(OpCall& call) {
  const DType dtype = call.result().dtype;
  if (dtype == DType::kBool) return Unsupported{"eager has no such op for bools"};
  set_elementwise(call, {"a", "b", "c"},
                  [](std::span<const Expr> x) { return multiply_add(x[0], x[1], x[2]); });
  return std::nullopt;
}

// Two forms, so that weights 0 and 1 give the ends exactly.
Expr interpolate(Expr start, Expr end, Expr weight) {
  const Expr difference = end - start;
  return select(less(absolute(weight), 0.5), multiply_add(weight, difference, start),
                multiply_add(-difference, 1 - weight, end));
}

std::optional<Unsupported> lower_lerp_by_number(OpCall& call) {
  const DType dtype = call.result().dtype;
  if (!is_floating(dtype)) return Unsupported{"eager interpolates floating-point tensors only"};
  set_elementwise(call, {"self", "end"}, [&](std::span<const Expr> x) {
    return interpolate(x[0], x[1], precise_number(call, "weight", dtype));
  });
  return std::nullopt;
}

std::optional<Unsupported> lower_lerp(OpCall& call) {
  const DType dtype = call.result().dtype;
  if (!is_floating(dtype)) return Unsupported{"eager interpolates floating-point tensors only"};
  call.set(0, call.pointwise(call.result(), [&](std::span<const Index> position) {
    return round_result(interpolate(load_converted(call, "self", position, dtype),
                                    load_converted(call, "end", position, dtype),
                                    load_precise(call, "weight", position, dtype)),
                        dtype, dtype);
  }));
  return std::nullopt;
}

constexpr LoweringRow kRows[] = {
    {"aten::add.Tensor", lower_add},
    {"aten::add.Scalar", lower_add},
    {"aten::sub.Tensor", lower_sub},
    {"aten::sub.Scalar", lower_sub},
    {"aten::rsub.Tensor", lower_rsub},
    {"aten::rsub.Scalar", lower_rsub},
    {"aten::mul.Tensor", lower_precise_binary<product_of>},
    {"aten::mul.Scalar", lower_precise_binary<product_of>},
    {"aten::div.Tensor", lower_quotient},
    {"aten::div.Scalar", lower_quotient},
    {"aten::div.Tensor_mode", lower_quotient_with_mode},
    {"aten::div.Scalar_mode", lower_quotient_with_mode},
    {"aten::true_divide.Tensor", lower_quotient},
    {"aten::floor_divide", lower_floor_quotient},
    {"aten::floor_divide.Scalar", lower_floor_quotient},
    {"aten::remainder.Tensor", lower_remainder<ExprOp::kRemainder>},
    {"aten::remainder.Scalar", lower_remainder<ExprOp::kRemainder>},
    {"aten::remainder.Scalar_Tensor", lower_remainder<ExprOp::kRemainder>},
    {"aten::fmod.Tensor", lower_remainder<ExprOp::kFmod>},
    {"aten::fmod.Scalar", lower_remainder<ExprOp::kFmod>},
    {"aten::neg", lower_number_unary<ExprOp::kNeg>},
    {"aten::abs", lower_number_unary<ExprOp::kAbs>},
    {"aten::pow.Tensor_Scalar", lower_power_of_tensor},
    {"aten::pow.Scalar", lower_power_of_number},
    {"aten::pow.Tensor_Tensor", lower_power_of_tensors},
    {"aten::addcmul", lower_addcmul},
    {"aten::addcdiv", lower_addcdiv},
    {"prims::fma", lower_fma},
    {"aten::lerp.Scalar", lower_lerp_by_number},
    {"aten::lerp.Tensor", lower_lerp},
    {"aten::bitwise_and.Tensor", lower_binary<apply<ExprOp::kBitAnd>>},
    {"aten::bitwise_and.Scalar", lower_binary<apply<ExprOp::kBitAnd>>},
    {"aten::bitwise_and.Scalar_Tensor", lower_binary<apply<ExprOp::kBitAnd>>},
    {"aten::bitwise_or.Tensor", lower_binary<apply<ExprOp::kBitOr>>},
    {"aten::bitwise_or.Scalar", lower_binary<apply<ExprOp::kBitOr>>},
    {"aten::bitwise_or.Scalar_Tensor", lower_binary<apply<ExprOp::kBitOr>>},
    {"aten::bitwise_xor.Tensor", lower_binary<apply<ExprOp::kBitXor>>},
    {"aten::bitwise_xor.Scalar", lower_binary<apply<ExprOp::kBitXor>>},
    {"aten::bitwise_xor.Scalar_Tensor", lower_binary<apply<ExprOp::kBitXor>>},
    {"aten::bitwise_not", lower_unary<apply<ExprOp::kBitNot>>},
    {"aten::bitwise_left_shift.Tensor", lower_binary<apply<ExprOp::kShiftLeft>>},
    {"aten::bitwise_left_shift.Tensor_Scalar", lower_binary<apply<ExprOp::kShiftLeft>>},
    {"aten::bitwise_left_shift.Scalar_Tensor", lower_binary<apply<ExprOp::kShiftLeft>>},
    {"aten::bitwise_right_shift.Tensor", lower_binary<apply<ExprOp::kShiftRight>>},
    {"aten::bitwise_right_shift.Tensor_Scalar", lower_binary<apply<ExprOp::kShiftRight>>},
    {"aten::bitwise_right_shift.Scalar_Tensor", lower_binary<apply<ExprOp::kShiftRight>>},
    {"aten::__lshift__.Tensor", lower_binary<apply<ExprOp::kShiftLeft>>},
    {"aten::__lshift__.Scalar", lower_binary<apply<ExprOp::kShiftLeft>>},
    {"aten::__rshift__.Tensor", lower_binary<apply<ExprOp::kShiftRight>>},
    {"aten::__rshift__.Scalar", lower_binary<apply<ExprOp::kShiftRight>>},
    {"aten::__and__.Tensor", lower_binary<apply<ExprOp::kBitAnd>>},
    {"aten::__and__.Scalar", lower_binary<apply<ExprOp::kBitAnd>>},
    {"aten::__or__.Tensor", lower_binary<apply<ExprOp::kBitOr>>},
    {"aten::__or__.Scalar", lower_binary<apply<ExprOp::kBitOr>>},
    {"aten::__xor__.Tensor", lower_binary<apply<ExprOp::kBitXor>>},
    {"aten::__xor__.Scalar", lower_binary<apply<ExprOp::kBitXor>>},
};

}  // namespace

std::span<const LoweringRow> arithmetic_rows() { return kRows; }

}  // namespace litz
