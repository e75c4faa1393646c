#include "ir/attention_operands.h"

namespace litz {

bool is_contiguous_along(const Program& program, Expr load, Index variable) {
  if (load.op() != ExprOp::kLoad || !load.operands().empty()) return false;
  const Index offset =
      dot(program.indices(), load.coordinates(), program.buffer(load.buffer()).strides);
  const std::optional<LinearIn> linear = linear_in(offset, variable);
  return linear && linear->stride.is_constant(1);
}

}  // namespace litz
