#pragma once

#include "graph/graph.h"
#include "passes/pass_options.h"

namespace litz {

// On a CPU: writes convolutions of float32 whose windows do not overlap as matrix products, where
// kernels compute these and are faster than the library's convolution.
//
//   channels-last   the pixels are rows of a matrix, which a product with the weight's rows leaves
//                   as rows of the result
//   row-major       each image is a matrix of channels and pixels, from which a product with the
//                   weight makes that of the result
//
// Of a window of one pixel, step by step, that takes views alone. Larger windows that lie side by
// side, and pixels that are apart, are copied into a matrix first.
Graph convolutions_as_products(const Graph& graph, const PassOptions& options);

// Whether the pass writes the call as a product.
bool is_convolution_product(const Graph& graph, NodeId id, const PassOptions& options);

}  // namespace litz
