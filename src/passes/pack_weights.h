#pragma once

#include <string_view>

#include "graph/graph.h"

namespace litz {

// The library op that convolves with a packed weight, and the one that packs it. The pass takes
// them where a front end has declared their schemas, which is where its library has them.
inline constexpr std::string_view kPackedConvolution = "mkldnn::_convolution_pointwise";
inline constexpr std::string_view kPackConvolution = "mkldnn::_reorder_convolution_weight";

// On a CPU: gives oneDNN frozen weights of channels-last convolutions in the layout that it would
// otherwise copy them to in each call, and products of few rows frozen weights whose columns
// lie next to each other. On a GPU: pads frozen weights of half floats to whole vectors,
// where lowering would do that in each call (lowering/padded_products.cpp).
Graph pack_weights(const Graph& graph);

}  // namespace litz
