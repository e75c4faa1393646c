// Prints a matrix product and what is stored behind it as Triton.
//
// A program goes through tiles of the result, one after the other, so that the next tile's operands
// are loaded while this one's elements are stored. Operands are loaded by tensor descriptors, which
// hardware since Hopper does without the threads; past the ends of a matrix they give zeros.
//
// Where programs share the factors of a tile, the first function stores partial sums, and what is
// behind the product belongs to the second one, which adds them up.
#pragma once

#include "codegen/triton/product_tiles.h"
#include "codegen/triton/triton_kernel.h"
#include "schedule/matrix_product.h"

namespace litz {

// The kernel as a product, where its matrices lie in memory row by row or column by column, at
// addresses that are multiples of 16 bytes.
std::optional<MatrixProduct> product_kernel(const Kernel& kernel,
                                            const std::vector<bool>& unaligned);

TritonKernel print_triton_product(const Plan& plan, const Kernel& kernel,
                                  const MatrixProduct& product, const ProductTile& tile,
                                  const TritonDevice& device, TritonPrelude& prelude);

}  // namespace litz
