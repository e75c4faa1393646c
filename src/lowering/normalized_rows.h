// Rows of a norm over the last dimensions: those that its argument normalized_shape names.
#pragma once

#include <span>
#include <vector>

#include "lowering/lowering.h"

namespace litz {

// The dimensions of the rows, which are the last ones, and those before them.
struct RowSplit {
  std::vector<size_t> outer;
  std::vector<size_t> row;
};

RowSplit split_rows(const OpCall& call, size_t rank);

// An optional factor or summand of the shape of a row.
Expr load_row(OpCall& call, const TensorValue& parameter, std::span<const Index> p, DType dtype);

}  // namespace litz
