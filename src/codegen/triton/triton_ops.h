// The Triton dialect's table: text for every scalar operation on blocks of values.
#pragma once

#include <string>
#include <vector>

#include "codegen/triton/triton_prelude.h"
#include "ir/expr_ops.h"

namespace litz {

// An operand in registers: half floats are float32 values.
struct TritonOperand {
  std::string text;
  DType dtype;
  std::string literal;  // of a constant, for an operator beside a value of its type
};

std::string triton_expression(TritonPrelude& prelude, ExprOp op, DType result,
                              const std::vector<TritonOperand>& operands);

// What combines two accumulators; a name of a function of two arguments.
std::string triton_extreme(TritonPrelude& prelude, bool max, DType dtype);

}  // namespace litz
