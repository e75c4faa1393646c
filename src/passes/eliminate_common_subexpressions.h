#pragma once

#include "graph/graph.h"

namespace litz {

// Uses the first of several calls of one pure op (graph/op_traits.h) with the same arguments.
//
// A call counts as the same only where nothing wrote to its arguments' storage in between. Two
// results with storage of their own stay apart where something writes to one of them, or where the
// caller would see both, because the caller may write to one and must not find the other changed.
Graph eliminate_common_subexpressions(const Graph& graph);

}  // namespace litz
