// How much work an expression is, in units of about one vector instruction.
#pragma once

#include "ir/program.h"

namespace litz {

struct ExprCost {
  int nodes = 0;                 // distinct operations that are not leaves
  int work = 0;                  // weighted operations
  int loads = 0;                 // distinct loads
  bool runtime_indices = false;  // some load or check depends on loaded positions
  bool checks = false;           // may raise an error: an index, a divisor
  bool position = false;         // uses the value of a loop variable
  bool masked = false;
};

int operation_work(ExprOp op);
// Whether it makes checks. Eager's checks are part of what an op means, so they are done for every
// element, whoever reads it.
bool has_checks(const Operation& operation);
ExprCost measure_cost(Expr root);

}  // namespace litz
