// Plans of a graph for choose_kernels.h, outside of its compilation: what is chosen is traced and
// timed when it is planned once more.
#pragma once

#include <functional>

#include "driver/choose_kernels.h"
#include "driver/device_target.h"
#include "driver/options.h"
#include "driver/stage_options.h"
#include "graph/graph.h"

namespace litz {

// The arguments must outlive the function.
std::function<PlannedCandidates(const KernelChoices&)> candidate_planner(
    const Graph& graph, const Options& options, KernelDialect dialect, const DeviceTarget& device);

}  // namespace litz
