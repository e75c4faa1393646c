// Sums over windows among reductions, as of a depthwise convolution in float32, which lowering has
// marked as products: the sum over the taps (i, j) of a window of a[..., y, x, c] * b[i, j, c],
// where y and x are linear in a position of the result and a tap, and taps outside do not count.
//
// The scheduler keeps them as they are, as it does matrix products (schedule/matrix_product.h): the
// dialect has a kernel for them (codegen/cpp/cpp_window.h).
#pragma once

#include <optional>
#include <vector>

#include "schedule/plan.h"

namespace litz {

struct WindowSum {
  // A tap counts where `at` is in [least, end).
  struct Bound {
    Index at;
    int64_t least = INT64_MIN;
    int64_t end = INT64_MAX;
  };

  Expr input;   // the load of a: varies along the last three outer loops and both inner ones
  Expr weight;  // the load of b: varies along the last outer loop and both inner ones
  std::vector<Bound> bounds;
};

// Nothing where the operation or kernel is no such sum. What is stored behind its loops may be
// anything.
std::optional<WindowSum> window_sum(const Operation& operation);
std::optional<WindowSum> window_sum(const Kernel& kernel);

}  // namespace litz
