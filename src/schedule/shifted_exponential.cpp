#include "schedule/shifted_exponential.h"

namespace litz {
namespace {

bool is_zero(Expr e) { return e.op() == ExprOp::kConstant && e.scalar().real == 0; }

bool is_infinity_test_of(Expr e, Expr operand) {
  return e.op() == ExprOp::kIsInf && e.operands()[0] == operand;
}

}  // namespace

std::optional<ShiftedExponential> shifted_exponential(Expr e) {
  if (e.op() != ExprOp::kExp || e.operands()[0].op() != ExprOp::kSub) return std::nullopt;
  const Expr difference = e.operands()[0];
  const Expr shift = difference.operands()[1];
  if (shift.op() == ExprOp::kWhere && is_zero(shift.operands()[1]) &&
      is_infinity_test_of(shift.operands()[0], shift.operands()[2]))
    return ShiftedExponential{difference.operands()[0], shift.operands()[2], true};
  return ShiftedExponential{difference.operands()[0], shift, false};
}

}  // namespace litz
