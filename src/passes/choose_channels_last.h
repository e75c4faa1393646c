#pragma once

#include "graph/graph.h"
#include "passes/pass_options.h"

namespace litz {

// Lays out images and volumes channels-last (NHWC) where convolutions are faster on them, for the
// graph as a whole: a sum of what convolutions save (layout_rules.h) against what copies cost.
//
// A convolution gets channels-last operands, by aten::clone where they are something else, and so
// returns a channels-last result. Ops that keep a layout (keeps_layout in graph/op_traits.h) take
// it from their arguments to their results, so that nothing is copied between two convolutions. All
// other ops, views among them, get a copy with eager's strides. So does whatever the caller or a
// write can see: layouts of values that nobody but this graph's own ops looks at are all that
// changes.
Graph choose_channels_last(const Graph& graph, const PassOptions& options);

}  // namespace litz
