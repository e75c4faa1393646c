#include "driver/run_passes.h"

#include <algorithm>

#include "driver/stage_options.h"
#include "graph/print_graph.h"
#include "graph/verify_graph.h"
#include "passes/pipeline.h"

namespace litz {

Graph run_passes(const Graph& given, const Options& options, Trace& trace, Timings& timings,
                 const std::map<std::string, bool>& kernel_choices) {
  Graph graph = given;
  if (trace.enabled()) trace.write("graph.litz", to_string(graph));
  if (options.verify) verify_graph(graph);
  PassOptions passes = pass_options(options);
  passes.kernel_choices = kernel_choices;
  const std::vector<std::string> disabled = split_list(options.disable_passes);
  for (const GraphPass& pass : graph_passes()) {
    if (std::find(disabled.begin(), disabled.end(), pass.name) != disabled.end()) continue;
    Graph next = timings.measure(pass.name, [&] { return pass.function(graph, passes); });
    if (trace.enabled() && to_string(next) != to_string(graph))
      trace.write("graph_after_" + std::string(pass.name) + ".litz", to_string(next));
    if (options.verify) verify_graph(next);
    graph = std::move(next);
  }
  return graph;
}

}  // namespace litz
