// The expression whose sum a variance is made from: (x - m)^2 with m = s / n, the mean of n
// elements whose sum is s.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/expr.h"

namespace litz {

struct SquaredDeviation {
  Expr x;
  Expr sum;
  int64_t count = 0;
};

// Nothing where the expression is none. What x, the sum and the count are the caller has to look
// at.
std::optional<SquaredDeviation> squared_deviation(Expr e);

}  // namespace litz
