// Prints a matrix product and what is stored behind it as C++.
//
// A block of the result (codegen/cpp/product_tiles.h) is computed in an array that stays in the
// caches, from where the stores behind the product read it; a product that is stored as it is goes
// to its place at once. The right operand is packed, once for all blocks of the same columns that a
// thread computes one after the other; the left one is read where it is, but for half floats, which
// are widened on the way, and rows that all lie in the same lines of the first cache. Elements do
// not depend on the number of threads.
//
// A right operand that lies in panels is read as it is (graph/packed_linear.h).
//
// Where the target multiplies pairs of bfloat16, a factor is such a pair: packed operands are words
// of 32 bits, in arrays of float32, and all that counts factors counts pairs. An odd number of them
// is completed by 0 in both operands. A matrix unit (AMX) multiplies tiles of such pairs.
#pragma once

#include "codegen/cpp/cpp_kernel.h"
#include "schedule/matrix_product.h"

namespace litz {

// The most factors of a product in such a kernel: whole columns of them are packed on the stack.
inline constexpr int64_t kMostProductFactors = 8192;

// The kernel as a product, where its sizes are constant and its matrices lie in memory row by row
// or column by column.
std::optional<MatrixProduct> cpp_product(const Kernel& kernel, const PreludeTarget& target);

CppKernel print_cpp_product(const Program& program, const Kernel& kernel,
                            const MatrixProduct& product, Prelude& prelude,
                            const PreludeTarget& target);

}  // namespace litz
