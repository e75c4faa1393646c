// PyTorch's rules for the dtype an elementwise op computes in.
#pragma once

#include <initializer_list>
#include <string_view>

#include "lowering/lowering.h"

namespace litz {

// torch.result_type of these arguments: tensors with dimensions decide, then 0-dim tensors, then
// numbers, each only where it is of a higher category (bool, integer, float) than those before.
// A number counts as int64, float32 (the default dtype) or bool.
DType result_type(const OpCall& call, std::initializer_list<std::string_view> arguments);

// The dtype in which eager computes one op on elements of this one: float32 for the halves.
inline DType computation_dtype(DType dtype) { return is_half(dtype) ? DType::kFloat32 : dtype; }

// The element in the dtype that arithmetic uses, after conversion to `dtype` and its rounding.
Expr convert(Expr element, DType dtype);
// The inverse: what a computation in computation_dtype(dtype) gives, rounded to `dtype` where that
// is a half, and then converted to `stored`.
Expr round_result(Expr value, DType dtype, DType stored);

// Rounded to the half dtype and back to float32; as it is where `dtype` is no half.
Expr rounded(Expr value, DType dtype);

// The largest finite number of a floating dtype.
Scalar largest_finite(DType dtype);

}  // namespace litz
