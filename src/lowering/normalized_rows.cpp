#include "lowering/normalized_rows.h"

#include "lowering/reduction_helpers.h"

namespace litz {

RowSplit split_rows(const OpCall& call, size_t rank) {
  const size_t row = call.index_list("normalized_shape").size();
  RowSplit split;
  for (size_t i = 0; i < rank; ++i) (i < rank - row ? split.outer : split.row).push_back(i);
  return split;
}

Expr load_row(OpCall& call, const TensorValue& parameter, std::span<const Index> p, DType dtype) {
  return cast(load_wide_broadcast(call, parameter, p), dtype);
}

}  // namespace litz
