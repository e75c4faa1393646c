#pragma once

#include <string_view>

#include "graph/graph.h"
#include "passes/pass_options.h"

namespace litz {

// Library ops that convolve with a packed weight, and those that pack it. The pass takes them where
// a front end has declared their schemas, which is where its library has them.
struct PackedConvolution {
  bool transposed;
  std::string_view op;
  std::string_view pack;
};
inline constexpr PackedConvolution kPackedConvolutions[] = {
    {false, "mkldnn::_convolution_pointwise", "mkldnn::_reorder_convolution_weight"},
    {true, "mkldnn::_convolution_transpose_pointwise",
     "mkldnn::_reorder_convolution_transpose_weight"},
};

// On a CPU: gives oneDNN frozen weights of channels-last convolutions in the layout that it would
// otherwise copy them to in each call, products that are kernels frozen weights in panels
// (graph/packed_linear.h), and the library's products of few rows frozen weights whose columns lie
// next to each other. On a GPU: pads frozen weights of half floats to whole vectors,
// where lowering would do that in each call (lowering/padded_products.cpp).
Graph pack_weights(const Graph& graph, const PassOptions& options);

}  // namespace litz
