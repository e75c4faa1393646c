#pragma once

#include "graph/graph.h"

namespace litz {

// Scales the frozen weights of a convolution or a linear layer by what is done to each channel of
// its result, and adds to its bias, instead of doing it to the result: a batch norm in evaluation,
// sums, differences, products and quotients with frozen numbers of each channel or with plain
// numbers, where nobody else sees what is in between. New weights are rounded once, from an
// arithmetic of twice as many digits; the results differ from eager's by rounding
// (docs/numerics.md).
Graph fold_batch_norms(const Graph& graph);

}  // namespace litz
