// What comes before the compilation of a graph that has frozen inputs.
#pragma once

#include "driver/options.h"
#include "graph/graph.h"
#include "passes/split_frozen.h"

namespace litz {

// The graph after the passes, in two parts: `frozen` is for the caller to run, once and again when
// a frozen input changes; `rest` is to be compiled, without choosing layouts anew. Writes a trace
// folder of its own. Throws as compile_graph does.
SplitGraph freeze_graph(const Graph& graph, const Options& options);

}  // namespace litz
