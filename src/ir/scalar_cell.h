// A constant as a column of one value (see ir/column_kernels.h), and back.
#pragma once

#include "ir/expr.h"

namespace litz {

struct ScalarCell {
  alignas(8) char bytes[8];
};

ScalarCell to_cell(const Scalar& scalar);
Scalar to_scalar(DType dtype, const ScalarCell& cell);

}  // namespace litz
