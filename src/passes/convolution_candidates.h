#pragma once

#include <vector>

#include "graph/graph.h"
#include "graph/kernel_candidate.h"
#include "passes/pass_options.h"

namespace litz {

// The convolutions of a graph that turn_weights and convolutions_as_products, which have not seen
// it yet, can make kernels of, with what they do by these options.
std::vector<KernelCandidate> convolution_candidates(const Graph& graph, const PassOptions& options);

}  // namespace litz
