// The product with a weight that lies as product kernels on a CPU read it, made of mm and addmm by
// passes/pack_weights.h. A front end declares the op where its library has it, too.
//
//   litz::packed_linear(Tensor input, Tensor weight, Tensor? bias, int columns) -> Tensor
//
// input[M, K] times the matrix [K, columns] that `weight` holds in panels of w columns:
//   weight[P, K, w]                      element [k, n] is weight[n / w, k, n % w]
//   weight[P, (K + 1) / 2, w, 2]         ... is weight[n / w, k / 2, n % w, k % 2], of bfloat16
// What lies behind the last column and the last factor is 0.
#pragma once

#include <cstdint>
#include <string_view>

namespace litz {

// Of a product on a CPU that is a kernel where nobody asks for it: what a kernel costs to compile,
// a call of the library does not.
inline constexpr int64_t kFewestMultiplyAdds = 1 << 15;

inline constexpr std::string_view kPackedLinear = "litz::packed_linear";

}  // namespace litz
