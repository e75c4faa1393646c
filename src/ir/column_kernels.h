// The scalar operations applied to columns of values: the one table from operation and dtype to
// code that constant folding (columns of one) and the reference interpreter share.
//
// A column holds values in the type they are computed in: bool, uint8_t, int8_t, int16_t, int32_t,
// int64_t, double as such; float32 and also float16 and bfloat16 as float, the halves rounded.
// At most 8 bytes a value. An output column may be one of the operand columns.
#pragma once

#include <cstdint>

#include "ir/expr_ops.h"
#include "support/dtype.h"

namespace litz {

using ColumnKernel = void (*)(void* out, const void* const* operands, int64_t count);

// Every operation but the leaves, kMasked (as a select it is kWhere) and kCheckIndex. `operand` is
// the dtype of the first operand (kWhere: of the second), `result` that of the result.
ColumnKernel find_column_kernel(ExprOp op, DType operand, DType result);

// Moves values between columns and strided memory in storage form (halves as 16 bits, bool as a
// byte). Element i is at memory + offsets[i] * size_of(dtype).
using ColumnLoad = void (*)(void* column, const void* memory, const int64_t* offsets,
                            int64_t count);
using ColumnStore = void (*)(const void* column, void* memory, const int64_t* offsets,
                             int64_t count);
ColumnLoad find_column_load(DType dtype);
ColumnStore find_column_store(DType dtype);

// Bytes of one value in a column.
int64_t column_value_bytes(DType dtype);

}  // namespace litz
