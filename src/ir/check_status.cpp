#include "ir/check_status.h"

namespace litz {

bool is_check(ExprOp op) {
  return op == ExprOp::kCheckIndex || op == ExprOp::kCheck || op == ExprOp::kCheckDivisor;
}

LitzStatus status_of(IndexFault fault) {
  return fault == IndexFault::kRuntimeError ? LITZ_INDEX_OUT_OF_BOUNDS : LITZ_INDEX_OUT_OF_RANGE;
}

std::string_view failure_text(LitzStatus status) {
  switch (status) {
    case LITZ_DIVISION_BY_ZERO:
      return "ZeroDivisionError: integer division by zero in ";
    case LITZ_VALUE_OUT_OF_RANGE:
      return "a value is outside of the range that the op takes in ";
    default:
      return "index out of range in ";
  }
}

}  // namespace litz
