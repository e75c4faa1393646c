// Runs the graph passes as the driver does: timed, verified and dumped, without those that the
// options leave out.
#pragma once

#include "driver/options.h"
#include "driver/timings.h"
#include "driver/trace.h"
#include "graph/graph.h"

namespace litz {

Graph run_passes(const Graph& graph, const Options& options, Trace& trace, Timings& timings);

}  // namespace litz
