#pragma once

#include "graph/graph.h"

namespace litz {

// Removes constants and calls whose results nobody uses. Inputs stay, and so does every call that
// writes to a tensor, draws random numbers (the generator's state is visible) or may raise an error
// that eager would raise: see cannot_fail in graph/op_traits.h.
Graph eliminate_dead_nodes(const Graph& graph);

}  // namespace litz
