// Prints a matrix product and what is stored behind it as Triton.
//
// A program goes through tiles of the result, one after the other, so that the next tile's operands
// are loaded while this one's elements are stored. Operands are loaded by tensor descriptors, which
// hardware since Hopper does without the threads; past the ends of a matrix they give zeros.
#pragma once

#include "codegen/triton/triton_kernel.h"
#include "schedule/matrix_product.h"

namespace litz {

struct ProductTile {
  int rows = 128;  // of the result
  int columns = 128;
  int factors = 64;  // at a time
  int warps = 4;
  int stages = 3;  // of loads that are on their way at once

  bool operator==(const ProductTile&) const = default;
};

// The best for most sizes, and others that may be better for some.
ProductTile plan_product(const Kernel& kernel, const TritonDevice& device);
std::vector<ProductTile> other_product_tiles(const Kernel& kernel, const TritonDevice& device);

// The kernel as a product, where its matrices lie in memory row by row or column by column.
std::optional<MatrixProduct> product_kernel(const Program& program, const Kernel& kernel);

TritonKernel print_triton_product(const Plan& plan, const Kernel& kernel, const ProductTile& tile,
                                  const TritonDevice& device, TritonPrelude& prelude);

}  // namespace litz
