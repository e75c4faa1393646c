#include "schedule/expr_cost.h"

#include <array>

#include "ir/check_status.h"

namespace litz {

int operation_work(ExprOp op) {
  switch (op) {
    case ExprOp::kConstant:
    case ExprOp::kReduced:
      return 0;
    case ExprOp::kIndexValue:
    case ExprOp::kLoad:
    case ExprOp::kCast:
    case ExprOp::kBitcast:
    case ExprOp::kWhere:
    case ExprOp::kMasked:
    case ExprOp::kCheckIndex:
    case ExprOp::kCheck:
    case ExprOp::kCheckDivisor:
    case ExprOp::kNeg:
    case ExprOp::kAbs:
    case ExprOp::kSign:
    case ExprOp::kFloor:
    case ExprOp::kCeil:
    case ExprOp::kTrunc:
    case ExprOp::kRound:
    case ExprOp::kIsNan:
    case ExprOp::kIsInf:
    case ExprOp::kSignBit:
    case ExprOp::kBitNot:
    case ExprOp::kAdd:
    case ExprOp::kSub:
    case ExprOp::kMul:
    case ExprOp::kFma:
    case ExprOp::kCopySign:
    case ExprOp::kMin:
    case ExprOp::kMax:
    case ExprOp::kBitAnd:
    case ExprOp::kBitOr:
    case ExprOp::kBitXor:
    case ExprOp::kShiftLeft:
    case ExprOp::kShiftRight:
    case ExprOp::kEq:
    case ExprOp::kNe:
    case ExprOp::kLt:
    case ExprOp::kLe:
    case ExprOp::kGt:
    case ExprOp::kGe:
      return 1;
    case ExprOp::kDiv:
    case ExprOp::kSqrt:
    case ExprOp::kRsqrt:
    case ExprOp::kReciprocal:
    case ExprOp::kHypot:
    case ExprOp::kNextAfter:
    case ExprOp::kFloorDiv:
    case ExprOp::kTruncDiv:
    case ExprOp::kFmod:
    case ExprOp::kRemainder:
      return 6;
    case ExprOp::kExp:
    case ExprOp::kExp2:
    case ExprOp::kExpm1:
    case ExprOp::kLog:
    case ExprOp::kLog2:
    case ExprOp::kLog10:
    case ExprOp::kLog1p:
    case ExprOp::kSin:
    case ExprOp::kCos:
    case ExprOp::kTan:
    case ExprOp::kAsin:
    case ExprOp::kAcos:
    case ExprOp::kAtan:
    case ExprOp::kSinh:
    case ExprOp::kCosh:
    case ExprOp::kTanh:
    case ExprOp::kAsinh:
    case ExprOp::kAcosh:
    case ExprOp::kAtanh:
    case ExprOp::kErf:
    case ExprOp::kErfc:
    case ExprOp::kSigmoid:
    case ExprOp::kAtan2:
      return 15;
    case ExprOp::kPhilox32:
    case ExprOp::kPhilox64:
    case ExprOp::kErfinv:
    case ExprOp::kLgamma:
    case ExprOp::kDigamma:
    case ExprOp::kPow:
      return 40;
  }
  return 1;
}

bool has_checks(const Operation& operation) {
  bool found = false;
  visit_postorder(expressions(operation), [&](Expr e) { found = found || is_check(e.op()); });
  return found;
}

ExprCost measure_cost(Expr root) {
  ExprCost cost;
  visit_postorder(std::span<const Expr>(&root, 1), [&](Expr e) {
    cost.work += operation_work(e.op());
    switch (e.op()) {
      case ExprOp::kConstant:
      case ExprOp::kReduced:
        break;
      case ExprOp::kIndexValue:
        cost.position = true;
        break;
      case ExprOp::kLoad:
        ++cost.loads;
        if (!e.operands().empty()) cost.runtime_indices = true;
        break;
      case ExprOp::kCheckIndex:
      case ExprOp::kCheck:
      case ExprOp::kCheckDivisor:
        cost.runtime_indices = true;
        cost.checks = true;
        ++cost.nodes;
        break;
      case ExprOp::kMasked:
        cost.masked = true;
        ++cost.nodes;
        break;
      default:
        ++cost.nodes;
    }
  });
  return cost;
}

}  // namespace litz
