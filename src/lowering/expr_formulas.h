// Formulas over expressions, written as C++ writes them: operators and functions that make nodes.
//
// Both operands have one dtype; a number next to an expression stands for a constant of its dtype.
// Comparisons are functions, since == of two Expr asks whether they are the same node.
#pragma once

#include "ir/expr.h"

namespace litz {

// A constant of the same dtype as `like`.
inline Expr number(Expr like, double value) { return like.context().constant(like.dtype(), value); }

template <ExprOp op>
Expr apply(Expr a) {
  return a.context().unary(op, a);
}
template <ExprOp op>
Expr apply(Expr a, Expr b) {
  return a.context().binary(op, a, b);
}

#define LITZ_FORMULA_OPERATOR(symbol, op)                                                      \
  inline Expr operator symbol(Expr a, Expr b) { return apply<ExprOp::op>(a, b); }              \
  inline Expr operator symbol(Expr a, double b) { return apply<ExprOp::op>(a, number(a, b)); } \
  inline Expr operator symbol(double a, Expr b) { return apply<ExprOp::op>(number(b, a), b); }
LITZ_FORMULA_OPERATOR(+, kAdd)
LITZ_FORMULA_OPERATOR(-, kSub)
LITZ_FORMULA_OPERATOR(*, kMul)
LITZ_FORMULA_OPERATOR(/, kDiv)
#undef LITZ_FORMULA_OPERATOR

inline Expr operator-(Expr a) { return apply<ExprOp::kNeg>(a); }

#define LITZ_FORMULA_COMPARISON(name, op)                              \
  inline Expr name(Expr a, Expr b) { return apply<ExprOp::op>(a, b); } \
  inline Expr name(Expr a, double b) { return apply<ExprOp::op>(a, number(a, b)); }
LITZ_FORMULA_COMPARISON(equal, kEq)
LITZ_FORMULA_COMPARISON(not_equal, kNe)
LITZ_FORMULA_COMPARISON(less, kLt)
LITZ_FORMULA_COMPARISON(less_equal, kLe)
LITZ_FORMULA_COMPARISON(greater, kGt)
LITZ_FORMULA_COMPARISON(greater_equal, kGe)
LITZ_FORMULA_COMPARISON(minimum, kMin)
LITZ_FORMULA_COMPARISON(maximum, kMax)
#undef LITZ_FORMULA_COMPARISON

#define LITZ_FORMULA_FUNCTION(name, op) \
  inline Expr name(Expr a) { return apply<ExprOp::op>(a); }
LITZ_FORMULA_FUNCTION(absolute, kAbs)
LITZ_FORMULA_FUNCTION(exponential, kExp)
LITZ_FORMULA_FUNCTION(logarithm, kLog)
LITZ_FORMULA_FUNCTION(log_plus_one, kLog1p)
LITZ_FORMULA_FUNCTION(exp_minus_one, kExpm1)
LITZ_FORMULA_FUNCTION(square_root, kSqrt)
LITZ_FORMULA_FUNCTION(hyperbolic_tangent, kTanh)
LITZ_FORMULA_FUNCTION(error_function, kErf)
LITZ_FORMULA_FUNCTION(sigmoid, kSigmoid)
LITZ_FORMULA_FUNCTION(truncate, kTrunc)
LITZ_FORMULA_FUNCTION(logical_not, kBitNot)
#undef LITZ_FORMULA_FUNCTION

// Of two bools.
inline Expr both(Expr a, Expr b) { return apply<ExprOp::kBitAnd>(a, b); }
inline Expr either(Expr a, Expr b) { return apply<ExprOp::kBitOr>(a, b); }

inline Expr select(Expr condition, Expr a, Expr b) { return a.context().where(condition, a, b); }
inline Expr select(Expr condition, Expr a, double b) { return select(condition, a, number(a, b)); }
inline Expr select(Expr condition, double a, Expr b) { return select(condition, number(b, a), b); }

// a * b + c, rounded once; integers have no such operation and need none.
inline Expr multiply_add(Expr a, Expr b, Expr c) {
  return is_floating(a.dtype()) ? a.context().fma(a, b, c) : a * b + c;
}

// False for every integer and bool.
inline Expr is_nan(Expr a) {
  return is_floating(a.dtype()) ? apply<ExprOp::kIsNan>(a)
                                : a.context().constant_int(DType::kBool, 0);
}

// True where the element counts as true: NaN does.
inline Expr truth(Expr a) { return a.context().cast(a, DType::kBool); }

}  // namespace litz
