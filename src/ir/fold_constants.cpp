#include "ir/fold_constants.h"

#include "ir/column_kernels.h"
#include "ir/scalar_cell.h"

namespace litz {
namespace {

bool is_exact_on_floats(ExprOp op) {
  switch (op) {
    case ExprOp::kCast:
    case ExprOp::kNeg:
    case ExprOp::kAbs:
    case ExprOp::kSign:
    case ExprOp::kFloor:
    case ExprOp::kCeil:
    case ExprOp::kTrunc:
    case ExprOp::kRound:
    case ExprOp::kSqrt:
    case ExprOp::kReciprocal:
    case ExprOp::kIsNan:
    case ExprOp::kIsInf:
    case ExprOp::kSignBit:
    case ExprOp::kAdd:
    case ExprOp::kSub:
    case ExprOp::kMul:
    case ExprOp::kDiv:
    case ExprOp::kCopySign:
    case ExprOp::kMin:
    case ExprOp::kMax:
    case ExprOp::kEq:
    case ExprOp::kNe:
    case ExprOp::kLt:
    case ExprOp::kLe:
    case ExprOp::kGt:
    case ExprOp::kGe:
    case ExprOp::kFma:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::optional<Scalar> fold_constants(ExprOp op, DType result, std::span<const Expr> operands) {
  if (operands.empty() || operands.size() > 3) return std::nullopt;
  for (Expr operand : operands) {
    if (operand.op() != ExprOp::kConstant) return std::nullopt;
  }
  const DType operand = operands[0].dtype();
  const bool foldable = is_floating(operand)
                            ? is_exact_on_floats(op)
                            : op != ExprOp::kBitcast && op != ExprOp::kCheckIndex &&
                                  op != ExprOp::kCheck && op != ExprOp::kCheckDivisor;
  if (!foldable) return std::nullopt;

  ScalarCell cells[3];
  const void* columns[3];
  for (size_t i = 0; i < operands.size(); ++i) {
    cells[i] = to_cell(operands[i].scalar());
    columns[i] = cells[i].bytes;
  }
  ScalarCell out{};
  find_column_kernel(op, operand, result)(out.bytes, columns, 1);
  return to_scalar(result, out);
}

}  // namespace litz
