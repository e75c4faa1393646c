// Arithmetic on expressions in operator form, for formulas longer than a line. Operands agree in
// dtype; the meaning is that of ir/expr_ops.h.
#pragma once

#include "ir/expr.h"

namespace litz {

inline Expr operator+(Expr a, Expr b) { return a.context().binary(ExprOp::kAdd, a, b); }
inline Expr operator-(Expr a, Expr b) { return a.context().binary(ExprOp::kSub, a, b); }
inline Expr operator*(Expr a, Expr b) { return a.context().binary(ExprOp::kMul, a, b); }
inline Expr operator/(Expr a, Expr b) { return a.context().binary(ExprOp::kDiv, a, b); }
inline Expr operator-(Expr a) { return a.context().unary(ExprOp::kNeg, a); }

inline Expr cast(Expr a, DType dtype) { return a.context().cast(a, dtype); }
inline Expr unary(ExprOp op, Expr a) { return a.context().unary(op, a); }
inline Expr binary(ExprOp op, Expr a, Expr b) { return a.context().binary(op, a, b); }
inline Expr where(Expr condition, Expr a, Expr b) {
  return condition.context().where(condition, a, b);
}

// A number of the operand's dtype.
inline Expr number_like(Expr a, double value) { return a.context().constant(a.dtype(), value); }

}  // namespace litz
