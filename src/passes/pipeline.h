// The graph passes, in the order in which they run. The driver gives each one its timing, dump,
// verification and off switch; litz-opt runs one by name.
#pragma once

#include <span>
#include <string_view>

#include "graph/graph.h"
#include "passes/pass_options.h"

namespace litz {

struct GraphPass {
  std::string_view name;  // of the function
  std::string_view doc;   // one line
  Graph (*function)(const Graph& graph, const PassOptions& options);
};

std::span<const GraphPass> graph_passes();
// nullptr where there is none of that name.
const GraphPass* find_graph_pass(std::string_view name);

}  // namespace litz
