// Options that name parts of Litz or ops: whether there are such.
#pragma once

#include "driver/options.h"
#include "graph/graph.h"

namespace litz {

// Throws UserError that lists what is valid for a graph pass that does not exist, and for an op
// that neither the built-in table nor the graph has. Ops of other namespaces than the table's may
// be registered by anybody, for other graphs.
void check_options(const Options& options, const Graph& graph);

}  // namespace litz
