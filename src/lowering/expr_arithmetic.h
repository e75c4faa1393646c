// Short names for what formulas over expressions need beside the operators of expr_formulas.h.
#pragma once

#include "lowering/expr_formulas.h"

namespace litz {

inline Expr cast(Expr a, DType dtype) { return a.context().cast(a, dtype); }
inline Expr unary(ExprOp op, Expr a) { return a.context().unary(op, a); }
inline Expr binary(ExprOp op, Expr a, Expr b) { return a.context().binary(op, a, b); }
inline Expr where(Expr condition, Expr a, Expr b) {
  return condition.context().where(condition, a, b);
}

// A number of the operand's dtype.
inline Expr number_like(Expr a, double value) { return a.context().constant(a.dtype(), value); }

}  // namespace litz
