#pragma once

#include "graph/graph.h"
#include "passes/pass_options.h"

namespace litz {

// On a CPU: gives convolutions of channels-last images, where kernels compute these and are faster
// than the library's convolution, weights whose output channels lie next to each other (float32, of
// one group or depthwise), or whose channels do (bfloat16, of one group). Lowering makes kernels of
// those that have such weights.
Graph turn_weights(const Graph& graph, const PassOptions& options);

// Whether a kernel can compute the call with such a weight, and whether it does.
bool can_turn_weight(const Graph& graph, const Node& node, const PassOptions& options);
bool wants_turned_weight(const Graph& graph, const Node& node, const PassOptions& options);

// Whether the weight of a convolution is laid out so, and a kernel computes it.
bool has_turned_weight(const Graph& graph, const Node& convolution, const PassOptions& options);

}  // namespace litz
