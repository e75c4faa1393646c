// Runs the graph passes as the driver does: timed, verified and dumped, without those that the
// options leave out.
#pragma once

#include <map>
#include <string>

#include "driver/options.h"
#include "driver/timings.h"
#include "driver/trace.h"
#include "graph/graph.h"

namespace litz {

// `kernel_choices`: as PassOptions has them.
Graph run_passes(const Graph& graph, const Options& options, Trace& trace, Timings& timings,
                 const std::map<std::string, bool>& kernel_choices = {});

}  // namespace litz
