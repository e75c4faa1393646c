// Strides, linearisation and its inverse.
#include <algorithm>

#include "support/error.h"
#include "symbolic/sum.h"

namespace litz {

Index dot(IndexContext& context, std::span<const Index> position, std::span<const Index> strides) {
  LITZ_CHECK(position.size() == strides.size(), "as many positions as strides");
  SumBuilder sum(context);
  for (size_t i = 0; i < position.size(); ++i) sum.add(position[i] * strides[i], 1);
  return sum.finish();
}

// An empty dimension counts as one of size 1, as in PyTorch.
std::vector<Index> contiguous_strides(IndexContext& context, std::span<const Index> sizes) {
  std::vector<Index> strides(sizes.size());
  Index stride = context.constant(1);
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    if (!sizes[i].is_constant(0)) stride = stride * sizes[i];
  }
  return strides;
}

Index product(IndexContext& context, std::span<const Index> sizes) {
  Index result = context.constant(1);
  for (Index size : sizes) result = result * size;
  return result;
}

std::vector<Index> delinearize(Index linear, std::span<const Index> sizes) {
  const Index zero = linear.context().constant(0);
  const auto is_empty = [](Index size) { return size.is_constant(0); };
  std::vector<Index> position(sizes.size(), zero);
  if (std::any_of(sizes.begin(), sizes.end(), is_empty)) return position;
  for (size_t i = sizes.size(); i-- > 1;) {
    position[i] = mod(linear, sizes[i]);
    linear = floor_div(linear, sizes[i]);
  }
  // linear is below the product of the sizes, so the outermost position needs no mod.
  if (!sizes.empty() && !sizes[0].is_constant(1)) position[0] = linear;
  return position;
}

}  // namespace litz
