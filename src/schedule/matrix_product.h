// Matrix products among reductions: the sum over k of a[..., m, k] * b[..., k, n], of half floats in
// float32, which lowering has marked as such. (A sum that a user has written so stays what it is.)
//
// Where the dialect has a kernel for them (codegen/triton/triton_product.h), the scheduler keeps a
// product as it is: nothing is computed inside its loops, and what reads its elements may join its
// kernel behind them.
#pragma once

#include <optional>
#include <span>

#include "schedule/plan.h"

namespace litz {

struct MatrixProduct {
  Expr left;   // the load of a: varies along the last outer loop but one and the inner one
  Expr right;  // the load of b: varies along the last outer loop and the inner one
};

// Nothing where the operation or kernel is no such product. Outer loops before the last two are of
// batches, along which either operand may vary. What is stored behind the product's loops may be
// anything.
std::optional<MatrixProduct> matrix_product(const Operation& operation);
std::optional<MatrixProduct> matrix_product(const Kernel& kernel);

}  // namespace litz
