// Matrix products among reductions: the sum over k of a[..., m, k] * b[..., k, n] in float32, of
// float32 or half floats, which lowering has marked as such, or a sum of such products, as a
// convolution is: then there are further inner loops around that of k. (A sum that a user has
// written so stays what it is.)
//
// Where the dialect has a kernel for them (codegen/triton/triton_product.h,
// codegen/cpp/cpp_product.h), the scheduler keeps a product as it is: nothing is computed inside
// its loops, but that integers of 8 bits become half floats, and what reads its elements may join
// its kernel behind them.
#pragma once

#include <optional>
#include <span>

#include "schedule/plan.h"
#include "symbolic/loops.h"

namespace litz {

struct MatrixProduct {
  Expr left;    // the load of a: varies along the last outer loop but one and the last inner one
  Expr right;   // the load of b: varies along the last outer loop and the last inner one
  DType dtype;  // that both are multiplied as; either may be loaded as an integer of 8 bits
};

// Nothing where the operation or kernel is no such product. Outer loops before the last two are of
// batches, along which either operand may vary. What is stored behind the product's loops may be
// anything.
std::optional<MatrixProduct> matrix_product(const Operation& operation);
std::optional<MatrixProduct> matrix_product(const Kernel& kernel);

// Whether the right operand of a product lies in panels of so many columns, each factor of them
// `elements` neighbours (graph/packed_linear.h), for the loops n over columns and k over factors.
bool lies_in_panels(Index at, Index n, Index k, int64_t columns, int64_t elements);

// How an operand lies in memory: element [batches..., outer, k] is at offset + the sum of stride *
// batch + outer_stride * outer + k_stride * k.
struct OperandLayout {
  struct Batch {
    size_t loop = 0;  // its number among those of batches
    int64_t stride = 0;
  };
  std::vector<Batch> batches;  // those along which it varies
  int64_t offset = 0;
  int64_t outer_stride = 0;
  int64_t k_stride = 0;
};

// Nothing where strides are no constants, or `at` is not linear in the loops.
std::optional<OperandLayout> operand_layout(Index at, std::span<const Index> batches, Index outer,
                                            Index k);

// Whether hardware loads tiles of it: rows, columns or matrices at multiples of 16 bytes, in no
// more than five dimensions. `size` are an element's bytes.
bool has_tiles(const OperandLayout& layout, int64_t size);

// The same of both operands of a product, in the loops that its kernel would have; false of other
// operations.
bool has_tiles(const Program& program, const Operation& operation);

// Orders the outer loops of a product, those before `boundary`: along which both operands vary,
// then the left one's, then the right one's, each by stride, so that neighbours may become one
// loop. One operand's loops that do not become one with its last are of batches, too. `sides` are
// the offsets of the two operands over the old variables.
void order_product_loops(IndexContext& context, LoopRewrite& rewrite, size_t boundary,
                         std::span<const Index> sides);

}  // namespace litz
