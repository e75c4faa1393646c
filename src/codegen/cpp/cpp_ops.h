// The C++ dialect's table: text for every scalar operation, as a scalar and as a vector.
#pragma once

#include <string>
#include <vector>

#include "codegen/cpp/prelude.h"
#include "ir/expr_ops.h"

namespace litz {

// An operand in registers: half floats are float32 values, a bool is a C++ bool or a mask with
// lanes of `mask_bytes`.
struct CppOperand {
  std::string text;
  DType dtype;
  int mask_bytes;
};

std::string cpp_scalar_expression(Prelude& prelude, ExprOp op, DType result,
                                  const std::vector<CppOperand>& operands);

struct CppVectorExpression {
  std::string text;
  int mask_bytes = 0;  // of a bool result
};

// Bool operands have masks of one width; for kWhere of other values that of the result.
CppVectorExpression cpp_vector_expression(Prelude& prelude, ExprOp op, DType result,
                                          const std::vector<CppOperand>& operands, int lanes);

}  // namespace litz
