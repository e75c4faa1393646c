#pragma once

#include "graph/graph.h"

namespace litz {

// Uses the argument instead of a call whose result is the same tensor, element for element, with
// the same dtype, sizes, strides, offset and device:
//   - a view (expand, view, permute, slice, detach, ...) where it is not itself an output of the
//     graph, because the caller of an output may tell a view from its base;
//   - a copy (clone, _to_copy, ...) where nobody could tell: the caller does not see its storage,
//     nothing writes to it, and nothing writes to the argument's storage while it is in use.
// Arithmetic stays: x + 0 is not x for a negative zero.
Graph remove_noops(const Graph& graph);

}  // namespace litz
