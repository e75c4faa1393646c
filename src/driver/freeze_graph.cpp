#include "driver/freeze_graph.h"

#include "driver/check_options.h"
#include "driver/reproducer.h"
#include "driver/run_passes.h"
#include "graph/print_graph.h"
#include "graph/verify_graph.h"
#include "support/error.h"

namespace litz {
namespace {

SplitGraph freeze(const Graph& graph, const Options& options) {
  check_options(options, graph);
  Trace trace(options.trace);
  Timings timings;
  SplitGraph split = split_frozen(run_passes(graph, options, trace, timings));
  if (trace.enabled()) {
    trace.write("frozen.litz", to_string(split.frozen));
    trace.write("rest.litz", to_string(split.rest));
  }
  if (options.verify) {
    verify_graph(split.frozen);
    verify_graph(split.rest);
  }
  return split;
}

}  // namespace

SplitGraph freeze_graph(const Graph& graph, const Options& options) {
  try {
    return freeze(graph, options);
  } catch (const UserError&) {
    throw;
  } catch (const std::exception& error) {
    throw InternalError(error.what() + reproduce_hint(graph, options));
  }
}

}  // namespace litz
