// The expression whose sum a softmax divides by: exp(x - m), or exp(x - (isinf(m) ? 0 : m)) as in
// logsumexp.
#pragma once

#include <optional>

#include "ir/expr.h"

namespace litz {

struct ShiftedExponential {
  Expr x;
  Expr shift;              // m
  bool of_finite = false;  // 0 in place of an infinite m
};

// Nothing where the expression is none. What x and m are the caller has to look at.
std::optional<ShiftedExponential> shifted_exponential(Expr e);

}  // namespace litz
