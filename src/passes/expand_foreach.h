#pragma once

#include "graph/graph.h"

namespace litz {

// Calls of aten::_foreach_*, which do the same to every tensor of a list, become a call for each
// tensor, so that those of one tensor can share kernels. Ops without a counterpart for one tensor
// stay as they are.
Graph expand_foreach(const Graph& graph);

}  // namespace litz
