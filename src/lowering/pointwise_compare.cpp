// Comparisons, logic and the classification of numbers: rows that give bools.
#include "lowering/pointwise_helpers.h"
#include "lowering/pointwise_rows.h"

namespace litz {
namespace {

// Eager promotes first, so that an integer is compared with a float as a float.
template <ExprOp op>
std::optional<Unsupported> lower_comparison(OpCall& call) {
  set_elementwise(call, {"self", "other"}, result_type(call, {"self", "other"}),
                  [](std::span<const Expr> x) { return apply<op>(x[0], x[1]); });
  return std::nullopt;
}

// A formula over the truth of each operand in its own dtype.
template <ExprOp op>
std::optional<Unsupported> lower_logic(OpCall& call) {
  call.set(0, call.pointwise(call.result(), [&](std::span<const Index> position) {
    return apply<op>(truth(load_operand(call, "self", position, DType::kBool)),
                     truth(load_operand(call, "other", position, DType::kBool)));
  }));
  return std::nullopt;
}

// A bool formula over the operand in its own dtype.
template <Expr (*formula)(Expr)>
std::optional<Unsupported> lower_question(OpCall& call) {
  set_elementwise(call, {"self"}, call.tensor("self").dtype,
                  [](std::span<const Expr> x) { return formula(x[0]); });
  return std::nullopt;
}

Expr never(Expr like) { return like.context().constant_int(DType::kBool, 0); }
Expr is_false(Expr x) { return logical_not(truth(x)); }
Expr is_infinite(Expr x) { return is_floating(x.dtype()) ? apply<ExprOp::kIsInf>(x) : never(x); }
Expr is_finite(Expr x) { return logical_not(either(is_nan(x), is_infinite(x))); }
Expr is_positive_infinity(Expr x) {
  return x.dtype() == DType::kBool ? never(x) : both(is_infinite(x), greater(x, 0));
}
Expr is_negative_infinity(Expr x) {
  return x.dtype() == DType::kBool ? never(x) : both(is_infinite(x), less(x, 0));
}
Expr has_sign_bit(Expr x) {
  return x.dtype() == DType::kBool ? never(x) : apply<ExprOp::kSignBit>(x);
}

constexpr LoweringRow kRows[] = {
    {"aten::eq.Tensor", lower_comparison<ExprOp::kEq>},
    {"aten::eq.Scalar", lower_comparison<ExprOp::kEq>},
    {"aten::ne.Tensor", lower_comparison<ExprOp::kNe>},
    {"aten::ne.Scalar", lower_comparison<ExprOp::kNe>},
    {"aten::lt.Tensor", lower_comparison<ExprOp::kLt>},
    {"aten::lt.Scalar", lower_comparison<ExprOp::kLt>},
    {"aten::le.Tensor", lower_comparison<ExprOp::kLe>},
    {"aten::le.Scalar", lower_comparison<ExprOp::kLe>},
    {"aten::gt.Tensor", lower_comparison<ExprOp::kGt>},
    {"aten::gt.Scalar", lower_comparison<ExprOp::kGt>},
    {"aten::ge.Tensor", lower_comparison<ExprOp::kGe>},
    {"aten::ge.Scalar", lower_comparison<ExprOp::kGe>},
    {"aten::logical_and", lower_logic<ExprOp::kBitAnd>},
    {"aten::logical_or", lower_logic<ExprOp::kBitOr>},
    {"aten::logical_xor", lower_logic<ExprOp::kNe>},
    {"aten::logical_not", lower_question<is_false>},
    {"aten::isnan", lower_question<is_nan>},
    {"aten::isinf", lower_question<is_infinite>},
    {"aten::isfinite", lower_question<is_finite>},
    {"aten::isposinf", lower_question<is_positive_infinity>},
    {"aten::isneginf", lower_question<is_negative_infinity>},
    {"aten::signbit", lower_question<has_sign_bit>},
};

}  // namespace

std::span<const LoweringRow> comparison_rows() { return kRows; }

}  // namespace litz
