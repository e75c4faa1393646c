#pragma once

#include "graph/graph.h"
#include "passes/pass_options.h"

namespace litz {

// Uses the library's op for attention where a graph spells it out:
//
//   softmax(q @ k.transpose(-1, -2) * scale + mask) @ v
//
// with the softmax in the operands' dtype or in float32, the mask added, or filled in as -inf, or
// none. No number between the two products is in memory then, nor is one of half floats rounded.
// Nothing else may read what is in between, and sizes and widths have to be such that the op is
// faster. Positions that are masked as a whole have NaN, as they have from a softmax; on a CPU
// _safe_softmax, which gives them zeros, may stand in its place.
//
// The op is one whose result has known strides: on a CPU, and on a GPU without or with a mask.
Graph recognize_attention(const Graph& graph, const PassOptions& options);

}  // namespace litz
