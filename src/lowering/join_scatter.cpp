// A tensor with one window replaced: slice_scatter, select_scatter, diagonal_scatter, and the
// gradients of the views, which replace a window of zeros.
#include <algorithm>

#include "lowering/join_rows.h"
#include "lowering/view_helpers.h"

namespace litz {
namespace {

// Where the window is, and which of its elements lies at a position that is in it.
struct Window {
  Expr contains;
  std::vector<Index> position;
};
using FindWindow = std::function<Window(std::span<const Index> position)>;

// Sets result 0 to the window's tensor inside the window, and to "self" or zeros outside.
std::optional<Unsupported> set_with_window(OpCall& call, std::string_view window,
                                           const FindWindow& find) {
  const DType dtype = call.result().dtype;
  const bool has_self = call.node().schema->find("self") >= 0;
  call.set(0, call.pointwise(call.result(), [&](std::span<const Index> position) {
    ExprContext& exprs = call.exprs();
    const Window found = find(position);
    const Expr outside =
        has_self ? call.load(call.tensor("self"), position) : exprs.constant_int(dtype, 0);
    const Expr inside = call.load_broadcast(call.tensor(window), found.position);
    return exprs.masked(found.contains, exprs.cast(inside, dtype), outside);
  }));
  return std::nullopt;
}

std::optional<Unsupported> scatter_slice(OpCall& call, std::string_view window) {
  const std::vector<Index>& sizes = call.result().sizes;
  const size_t dim = dim_argument(call, "dim", sizes.size());
  const Index step = call.index("step");
  const Index first = call.is_none("start") ? call.indices().constant(0) : call.index("start");
  const std::optional<Index> start = normalize_start(first, sizes[dim]);
  if (!start) return Unsupported{"the sign of a slice's start is not known"};
  if (!step.is_constant()) return Unsupported{"the step of a slice is symbolic"};
  const Index end = *start + call.tensor(window).sizes[dim] * step;
  return set_with_window(call, window, [&](std::span<const Index> position) {
    const Index at = position[dim] - *start;
    Window found{
        both(index_not_below(call, position[dim], *start), index_below(call, position[dim], end)),
        {position.begin(), position.end()}};
    if (!step.is_constant(1)) {
      found.contains =
          both(found.contains, index_equals(call, mod(at, step), call.indices().constant(0)));
    }
    found.position[dim] = floor_div(at, step);
    return found;
  });
}
std::optional<Unsupported> lower_slice_scatter(OpCall& call) { return scatter_slice(call, "src"); }
std::optional<Unsupported> lower_slice_backward(OpCall& call) {
  return scatter_slice(call, "grad_output");
}

std::optional<Unsupported> scatter_selected(OpCall& call, std::string_view window) {
  const std::vector<Index>& sizes = call.result().sizes;
  const size_t dim = dim_argument(call, "dim", sizes.size());
  const std::optional<Index> at = normalize_start(call.index("index"), sizes[dim]);
  if (!at) return Unsupported{"the sign of the selected index is not known"};
  return set_with_window(call, window, [&](std::span<const Index> position) {
    Window found{index_equals(call, position[dim], *at), {position.begin(), position.end()}};
    found.position.erase(found.position.begin() + static_cast<std::ptrdiff_t>(dim));
    return found;
  });
}
std::optional<Unsupported> lower_select_scatter(OpCall& call) {
  return scatter_selected(call, "src");
}
std::optional<Unsupported> lower_select_backward(OpCall& call) {
  return scatter_selected(call, "grad_output");
}

std::optional<Unsupported> scatter_diagonal(OpCall& call, std::string_view window) {
  const size_t rank = call.result().sizes.size();
  const size_t dim1 = dim_argument(call, "dim1", rank);
  const size_t dim2 = dim_argument(call, "dim2", rank);
  const int64_t offset = call.integer("offset");
  return set_with_window(call, window, [&](std::span<const Index> position) {
    Window found{index_equals(call, position[dim1] + offset, position[dim2]), {}};
    for (size_t i = 0; i < rank; ++i) {
      if (i != dim1 && i != dim2) found.position.push_back(position[i]);
    }
    found.position.push_back(position[dim1] - std::max<int64_t>(-offset, 0));
    return found;
  });
}
std::optional<Unsupported> lower_diagonal_scatter(OpCall& call) {
  return scatter_diagonal(call, "src");
}
std::optional<Unsupported> lower_diagonal_backward(OpCall& call) {
  return scatter_diagonal(call, "grad_output");
}

constexpr LoweringRow kRows[] = {
    {"aten::slice_scatter", lower_slice_scatter},
    {"aten::select_scatter", lower_select_scatter},
    {"aten::diagonal_scatter", lower_diagonal_scatter},
    {"aten::slice_backward", lower_slice_backward},
    {"aten::select_backward", lower_select_backward},
    {"aten::diagonal_backward", lower_diagonal_backward},
};

}  // namespace

std::span<const LoweringRow> window_scatter_rows() { return kRows; }

}  // namespace litz
