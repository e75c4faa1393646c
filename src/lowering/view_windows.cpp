// Views that take a part: slice, select, split, diagonal, unfold, as_strided.
#include <algorithm>
#include <numeric>

#include "lowering/view_helpers.h"

namespace litz {

std::optional<Index> normalize_start(Index start, Index size) {
  const Index zero = size.context().constant(0);
  if (start.is_constant() && size.is_constant()) {
    const int64_t limit = size.constant();
    const int64_t at = start.constant() < 0 ? start.constant() + limit : start.constant();
    return size.context().constant(std::clamp<int64_t>(at, 0, limit));
  }
  // Beyond the end of a dimension of symbolic size there is no element, so nothing to clamp.
  if (prove_nonnegative(start)) return start;
  if (prove_less(start, zero)) return max(size + start, zero);
  return std::nullopt;
}

namespace {

// Element `position` of dimension `dim` of the view is start + step * position of the base.
TensorValue strided_window(OpCall& call, size_t output, size_t dim, Index start, Index step) {
  return call.view(call.tensor("self"), call.result(output).sizes,
                   [&](std::span<const Index> position) {
                     std::vector<Index> in_base(position.begin(), position.end());
                     in_base[dim] = start + step * position[dim];
                     return in_base;
                   });
}

Result<TensorValue> view_sliced(OpCall& call, size_t output) {
  const TensorValue& base = call.tensor("self");
  const size_t dim = dim_argument(call, "dim", base.rank());
  const Index first = call.is_none("start") ? call.indices().constant(0) : call.index("start");
  const std::optional<Index> start = normalize_start(first, base.sizes[dim]);
  if (!start) return Unsupported{"the sign of a slice's start is not known"};
  return strided_window(call, output, dim, *start, call.index("step"));
}

Result<TensorValue> view_narrowed(OpCall& call, size_t output) {
  const TensorValue& base = call.tensor("self");
  const size_t dim = dim_argument(call, "dim", base.rank());
  const std::optional<Index> start = normalize_start(call.index("start"), base.sizes[dim]);
  if (!start) return Unsupported{"the sign of a slice's start is not known"};
  return strided_window(call, output, dim, *start, call.indices().constant(1));
}

// Part `output` begins where the parts before it end.
Result<TensorValue> view_of_part(OpCall& call, size_t output) {
  const size_t dim = dim_argument(call, "dim", call.tensor("self").rank());
  Index start = call.indices().constant(0);
  for (size_t i = 0; i < output; ++i) start = start + call.result(i).sizes[dim];
  return strided_window(call, output, dim, start, call.indices().constant(1));
}

TensorValue selected(OpCall& call, size_t output, size_t dim, Index at) {
  return call.view(call.tensor("self"), call.result(output).sizes,
                   [&](std::span<const Index> position) {
                     std::vector<Index> in_base(position.begin(), position.end());
                     in_base.insert(in_base.begin() + static_cast<std::ptrdiff_t>(dim), at);
                     return in_base;
                   });
}

Result<TensorValue> view_selected(OpCall& call, size_t output) {
  const TensorValue& base = call.tensor("self");
  const size_t dim = dim_argument(call, "dim", base.rank());
  const std::optional<Index> at = normalize_start(call.index("index"), base.sizes[dim]);
  if (!at) return Unsupported{"the sign of the selected index is not known"};
  return selected(call, output, dim, *at);
}

Result<TensorValue> view_unbound(OpCall& call, size_t output) {
  const size_t dim = dim_argument(call, "dim", call.tensor("self").rank());
  return selected(call, output, dim, call.indices().constant(static_cast<int64_t>(output)));
}

Result<TensorValue> view_unfolded(OpCall& call, size_t output) {
  const TensorValue& base = call.tensor("self");
  const size_t dim = dim_argument(call, "dimension", base.rank());
  const Index step = call.index("step");
  return call.view(base, call.result(output).sizes, [&](std::span<const Index> position) {
    std::vector<Index> in_base(position.begin(), position.end() - 1);
    if (in_base.empty()) return in_base;  // a 0-dim tensor unfolds to itself
    in_base[dim] = position[dim] * step + position.back();
    return in_base;
  });
}

Result<TensorValue> view_diagonal(OpCall& call, size_t output) {
  const TensorValue& base = call.tensor("self");
  const size_t dim1 = dim_argument(call, "dim1", base.rank());
  const size_t dim2 = dim_argument(call, "dim2", base.rank());
  const int64_t offset = call.integer("offset");
  return call.view(base, call.result(output).sizes, [&](std::span<const Index> position) {
    std::vector<Index> in_base;
    size_t next = 0;
    for (size_t i = 0; i < base.rank(); ++i) {
      if (i == dim1) {
        in_base.push_back(position.back() + std::max<int64_t>(-offset, 0));
      } else if (i == dim2) {
        in_base.push_back(position.back() + std::max<int64_t>(offset, 0));
      } else {
        in_base.push_back(position[next++]);
      }
    }
    return in_base;
  });
}

// A buffer's dimensions of more than one element, largest stride first.
std::vector<size_t> order_of_strides(const Buffer& buffer) {
  std::vector<size_t> order(buffer.sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::erase_if(order, [&](size_t i) { return buffer.sizes[i].is_constant(1); });
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return buffer.strides[a] != buffer.strides[b] &&
           prove_less_equal(buffer.strides[b], buffer.strides[a]);
  });
  return order;
}

// The coordinates of the element that lies at `place` in the buffer's memory; nullopt where it is
// not certain that there is one.
std::optional<std::vector<Index>> coordinates_of_place(const Buffer& buffer, Index place) {
  IndexContext& indices = place.context();
  const Index zero = indices.constant(0);
  if (!prove_nonnegative(place)) return std::nullopt;
  std::vector<Index> coordinates(buffer.sizes.size(), zero);
  for (size_t dim : order_of_strides(buffer)) {
    if (!prove_less(zero, buffer.strides[dim])) return std::nullopt;
    coordinates[dim] = floor_div(place, buffer.strides[dim]);
    place = mod(place, buffer.strides[dim]);
    if (!prove_less(coordinates[dim], buffer.sizes[dim])) return std::nullopt;
  }
  return place.is_constant(0) ? std::optional(coordinates) : std::nullopt;
}

// Sizes and strides over the memory of the base, whose layout is eager's.
Result<TensorValue> view_as_strided(OpCall& call, size_t output) {
  const TensorValue& base = call.tensor("self");
  const Buffer& buffer = call.program().buffer(base.buffer);
  if (!base.strided || base.dtype != buffer.dtype)
    return Unsupported{"the tensor does not lie in memory as in eager"};
  const std::vector<Index>& sizes = call.result(output).sizes;
  const std::vector<Index> strides = call.index_list("stride");
  const Index offset = call.is_none("storage_offset")
                           ? base.strided->offset
                           : call.index("storage_offset") - call.storage_offset(base.buffer);
  const std::vector<Index> position = make_loops(call.indices(), sizes).variables;
  const std::optional<std::vector<Index>> coordinates =
      coordinates_of_place(buffer, offset + dot(call.indices(), position, strides));
  if (!coordinates) return Unsupported{"the window may reach elements that are not the tensor's"};
  return call.view(call.whole(base.buffer), sizes,
                   [&](std::span<const Index>) { return *coordinates; });
}

constexpr LoweringRow kRows[] = {
    {"aten::slice.Tensor", lower_view<view_sliced>},
    {"aten::slice_copy.Tensor", lower_copied_view<view_sliced>},
    {"aten::narrow", lower_view<view_narrowed>},
    {"aten::narrow_copy", lower_copied_view<view_narrowed>},
    {"aten::split.Tensor", lower_view<view_of_part>},
    {"aten::split.sizes", lower_view<view_of_part>},
    {"aten::split_with_sizes", lower_view<view_of_part>},
    {"aten::chunk", lower_view<view_of_part>},
    {"aten::unsafe_split.Tensor", lower_view<view_of_part>},
    {"aten::unsafe_split_with_sizes", lower_view<view_of_part>},
    {"aten::unsafe_chunk", lower_view<view_of_part>},
    {"aten::split_copy.Tensor", lower_copied_view<view_of_part>},
    {"aten::split_with_sizes_copy", lower_copied_view<view_of_part>},
    {"aten::select.int", lower_view<view_selected>},
    {"aten::select_copy.int", lower_copied_view<view_selected>},
    {"aten::unbind.int", lower_view<view_unbound>},
    {"aten::unbind_copy.int", lower_copied_view<view_unbound>},
    {"aten::unfold", lower_view<view_unfolded>},
    {"aten::unfold_copy", lower_copied_view<view_unfolded>},
    {"aten::diagonal", lower_view<view_diagonal>},
    {"aten::diagonal_copy", lower_copied_view<view_diagonal>},
    {"aten::as_strided", lower_view<view_as_strided>},
    {"aten::as_strided_copy", lower_copied_view<view_as_strided>},
};

}  // namespace

std::span<const LoweringRow> window_view_rows() { return kRows; }

}  // namespace litz
