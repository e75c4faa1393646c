// What a graph value is while a graph is lowered: a window on a buffer, or an integer.
//
// A TensorValue never computes. `coordinates` maps a position in the value (over the placeholder
// variables IndexContext::variable(i, sizes[i])) to coordinates of the buffer; a view op makes a
// new TensorValue whose map is the old one with the placeholders substituted. `strided` is the same
// window as eager sees it (sizes, strides, offset on the buffer's storage), present as long as
// every step was a view in eager too; library ops and graph outputs need it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/program.h"

namespace litz {

struct TensorValue {
  BufferId buffer;
  DType dtype = DType::kFloat32;  // differs from the buffer's dtype for a bit view
  std::vector<Index> sizes;
  std::vector<Index> coordinates;  // one per dimension of the buffer, over the placeholders
  std::optional<BufferView> strided;

  size_t rank() const { return sizes.size(); }
};

// Coordinates of the buffer for a position in the value.
std::vector<Index> coordinates_at(const TensorValue& value, std::span<const Index> position);

}  // namespace litz
