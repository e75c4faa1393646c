// Views that rename dimensions: reshape, permute, expand, squeeze.
#include <algorithm>
#include <vector>

#include "lowering/join_tables.h"
#include "lowering/view_helpers.h"

namespace litz {

size_t dim_argument(const OpCall& call, std::string_view name, size_t rank) {
  return normalize_dim(call.integer(name), rank);
}

std::vector<size_t> dim_list_argument(const OpCall& call, std::string_view name, size_t rank) {
  std::vector<size_t> dims;
  for (int64_t dim : call.integer_list(name)) dims.push_back(normalize_dim(dim, rank));
  return dims;
}

TensorValue reshaped(OpCall& call, const TensorValue& base, std::span<const Index> sizes) {
  const std::vector<Index>& old_sizes = base.sizes;
  // Dimensions that agree at either end keep their positions; only what lies between is divided.
  const size_t shorter = std::min(old_sizes.size(), sizes.size());
  size_t front = 0;
  while (front < shorter && old_sizes[front] == sizes[front]) ++front;
  size_t back = 0;
  while (back < shorter - front &&
         old_sizes[old_sizes.size() - 1 - back] == sizes[sizes.size() - 1 - back])
    ++back;
  const std::span<const Index> old_middle(old_sizes.begin() + front, old_sizes.end() - back);
  const std::span<const Index> middle(sizes.begin() + front, sizes.end() - back);
  return call.view(base, sizes, [&](std::span<const Index> position) {
    std::vector<Index> in_base(position.begin(), position.begin() + front);
    const Index linear = dot(call.indices(), position.subspan(front, middle.size()),
                             contiguous_strides(call.indices(), middle));
    for (Index coordinate : delinearize(linear, old_middle)) in_base.push_back(coordinate);
    in_base.insert(in_base.end(), position.end() - back, position.end());
    return in_base;
  });
}

namespace {

Result<TensorValue> view_same(OpCall& call, size_t) { return call.tensor("self"); }

Result<TensorValue> view_reshaped(OpCall& call, size_t output) {
  return reshaped(call, call.tensor("self"), call.result(output).sizes);
}

// A reshape that eager makes a copy of must not see later writes to an input.
std::optional<Unsupported> lower_reshape(OpCall& call) {
  const TensorValue view = reshaped(call, call.tensor("self"), call.result().sizes);
  const bool is_of_input = call.program().buffer(view.buffer).kind == BufferKind::kInput;
  if (is_of_input && !call.has_strides(view, call.result()))
    return lower_copied_view<view_reshaped>(call);
  call.set(0, view);
  return std::nullopt;
}

Result<TensorValue> view_of_bits(OpCall& call, size_t) {
  TensorValue value = call.tensor("self");
  const DType dtype = call.result().dtype;
  if (size_of(dtype) != size_of(value.dtype))
    return Unsupported{"it reads the bits as elements of another size"};
  value.dtype = dtype;
  if (value.strided) value.strided->dtype = dtype;
  return value;
}

Result<TensorValue> view_expanded(OpCall& call, size_t output) {
  const TensorValue& base = call.tensor("self");
  const size_t added = call.result(output).sizes.size() - base.rank();
  return call.view(base, call.result(output).sizes, [&](std::span<const Index> position) {
    std::vector<Index> in_base;
    for (size_t i = 0; i < base.rank(); ++i) {
      in_base.push_back(base.sizes[i].is_constant(1) ? call.indices().constant(0)
                                                     : position[added + i]);
    }
    return in_base;
  });
}

// Dimension i of the view is dimension order[i] of the base.
TensorValue permuted(OpCall& call, const std::vector<size_t>& order) {
  return call.view(call.tensor("self"), call.result().sizes, [&](std::span<const Index> position) {
    std::vector<Index> in_base(position.size());
    for (size_t i = 0; i < position.size(); ++i) in_base[order[i]] = position[i];
    return in_base;
  });
}

std::vector<size_t> swapped(size_t rank, size_t a, size_t b) {
  std::vector<size_t> order(rank);
  for (size_t i = 0; i < rank; ++i) order[i] = i;
  if (rank > 0) std::swap(order[a], order[b]);
  return order;
}

Result<TensorValue> view_permuted(OpCall& call, size_t) {
  return permuted(call, dim_list_argument(call, "dims", call.tensor("self").rank()));
}

Result<TensorValue> view_transposed(OpCall& call, size_t) {
  const size_t rank = call.tensor("self").rank();
  return permuted(
      call, swapped(rank, dim_argument(call, "dim0", rank), dim_argument(call, "dim1", rank)));
}

Result<TensorValue> view_swapped_axes(OpCall& call, size_t) {
  const size_t rank = call.tensor("self").rank();
  return permuted(
      call, swapped(rank, dim_argument(call, "axis0", rank), dim_argument(call, "axis1", rank)));
}

Result<TensorValue> view_matrix_transposed(OpCall& call, size_t) {
  const size_t rank = call.tensor("self").rank();
  return permuted(call, rank < 2 ? swapped(rank, 0, 0) : swapped(rank, rank - 2, rank - 1));
}

Result<TensorValue> view_with_moved_dims(OpCall& call, size_t) {
  const size_t rank = call.tensor("self").rank();
  const std::vector<size_t> from = dim_list_argument(call, "source", rank);
  const std::vector<size_t> to = dim_list_argument(call, "destination", rank);
  std::vector<size_t> order(rank, rank);
  for (size_t i = 0; i < std::min(rank, to.size()); ++i) order[to[i]] = from[i];
  size_t next = 0;
  for (size_t& dim : order) {
    if (dim != rank) continue;
    while (std::find(from.begin(), from.end(), next) != from.end()) ++next;
    dim = next++;
  }
  return permuted(call, order);
}

// The base's dimensions but those that are dropped, which have size 1.
TensorValue without_dims(OpCall& call, const std::vector<bool>& dropped) {
  const TensorValue& base = call.tensor("self");
  return call.view(base, call.result().sizes, [&](std::span<const Index> position) {
    std::vector<Index> in_base;
    size_t next = 0;
    for (size_t i = 0; i < base.rank(); ++i)
      in_base.push_back(dropped[i] ? call.indices().constant(0) : position[next++]);
    return in_base;
  });
}

Result<TensorValue> view_squeezed(OpCall& call, size_t) {
  const TensorValue& base = call.tensor("self");
  std::vector<bool> dropped(base.rank());
  for (size_t i = 0; i < base.rank(); ++i) dropped[i] = base.sizes[i].is_constant(1);
  return without_dims(call, dropped);
}

Result<TensorValue> view_with_squeezed_dims(OpCall& call, size_t) {
  const TensorValue& base = call.tensor("self");
  std::vector<bool> dropped(base.rank());
  for (size_t dim : dim_list_argument(call, "dim", base.rank())) {
    if (dim < base.rank()) dropped[dim] = base.sizes[dim].is_constant(1);
  }
  return without_dims(call, dropped);
}

Result<TensorValue> view_unsqueezed(OpCall& call, size_t) {
  const TensorValue& base = call.tensor("self");
  const size_t dim = dim_argument(call, "dim", base.rank() + 1);
  return call.view(base, call.result().sizes, [&](std::span<const Index> position) {
    std::vector<Index> in_base(position.begin(), position.end());
    in_base.erase(in_base.begin() + static_cast<std::ptrdiff_t>(dim));
    return in_base;
  });
}

constexpr LoweringRow kRows[] = {
    {"aten::alias", lower_view<view_same>},
    {"aten::detach", lower_view<view_same>},
    {"aten::lift", lower_view<view_same>},
    {"aten::lift_fresh", lower_view<view_same>},
    {"aten::view", lower_view<view_reshaped>},
    {"aten::view_as", lower_view<view_reshaped>},
    {"aten::_unsafe_view", lower_view<view_reshaped>},
    {"aten::_reshape_alias", lower_view<view_reshaped>},
    {"aten::reshape", lower_reshape},
    {"aten::reshape_as", lower_reshape},
    {"aten::flatten.using_ints", lower_reshape},
    {"aten::unflatten.int", lower_view<view_reshaped>},
    {"aten::view_copy", lower_copied_view<view_reshaped>},
    {"aten::view.dtype", lower_view<view_of_bits>},
    {"aten::view_copy.dtype", lower_copied_view<view_of_bits>},
    {"aten::expand", lower_view<view_expanded>},
    {"aten::expand_as", lower_view<view_expanded>},
    {"aten::expand_copy", lower_copied_view<view_expanded>},
    {"aten::permute", lower_view<view_permuted>},
    {"aten::permute_copy", lower_copied_view<view_permuted>},
    {"aten::transpose.int", lower_view<view_transposed>},
    {"aten::transpose_copy.int", lower_copied_view<view_transposed>},
    {"aten::swapdims", lower_view<view_transposed>},
    {"aten::swapaxes", lower_view<view_swapped_axes>},
    {"aten::t", lower_view<view_matrix_transposed>},
    {"aten::t_copy", lower_copied_view<view_matrix_transposed>},
    {"aten::mT", lower_view<view_matrix_transposed>},
    {"aten::movedim.int", lower_view<view_with_moved_dims>},
    {"aten::movedim.intlist", lower_view<view_with_moved_dims>},
    {"aten::squeeze", lower_view<view_squeezed>},
    {"aten::squeeze.dim", lower_view<view_with_squeezed_dims>},
    {"aten::squeeze.dims", lower_view<view_with_squeezed_dims>},
    {"aten::squeeze_copy", lower_copied_view<view_squeezed>},
    {"aten::squeeze_copy.dim", lower_copied_view<view_with_squeezed_dims>},
    {"aten::squeeze_copy.dims", lower_copied_view<view_with_squeezed_dims>},
    {"aten::unsqueeze", lower_view<view_unsqueezed>},
    {"aten::unsqueeze_copy", lower_copied_view<view_unsqueezed>},
};

}  // namespace

std::span<const LoweringRow> view_lowerings() {
  static const std::vector<LoweringRow> rows = join_tables({kRows, window_view_rows()});
  return rows;
}

}  // namespace litz
