// How much work an expression is, in units of about one vector instruction.
#pragma once

#include "ir/expr.h"

namespace litz {

struct ExprCost {
  int nodes = 0;                 // distinct operations that are not leaves
  int work = 0;                  // weighted operations
  int loads = 0;                 // distinct loads
  bool runtime_indices = false;  // some load or check depends on loaded positions
  bool position = false;         // uses the value of a loop variable
  bool masked = false;
};

int operation_work(ExprOp op);
ExprCost measure_cost(Expr root);

}  // namespace litz
