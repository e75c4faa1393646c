// Evaluation of one operation on constants.
#pragma once

#include <optional>
#include <span>

#include "ir/expr.h"

namespace litz {

// The value of `op` where all operands are constants and the value does not depend on the machine:
// every operation on integers and bools, casts, and of floats those that IEEE 754 defines to the
// bit (a function such as exp is not folded). nullopt otherwise.
std::optional<Scalar> fold_constants(ExprOp op, DType result, std::span<const Expr> operands);

}  // namespace litz
