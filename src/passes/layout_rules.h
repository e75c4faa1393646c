// What the layout of images and volumes is worth on a device: tables of numbers, from which
// choose_channels_last decides.
#pragma once

#include <optional>
#include <string_view>

#include "graph/graph.h"

namespace litz {

enum class ConvolutionKind : uint8_t {
  kDense,
  kFewChannels,  // so few input channels that vectors of them are mostly empty
  kDepthwise,    // one input channel for each output channel
  kGrouped,      // groups of several channels
};

// A convolution or the gradients of one, as the library is called.
struct Convolution {
  Value input;
  Value weight;
  Value gradient;  // of the output; only where the call computes gradients
  ConvolutionKind kind = ConvolutionKind::kDense;
  // Where sizes are symbolic, for a batch of usual size.
  double multiply_adds = 0;
};

// nullopt where the call is none, or one whose tensors have no channels-last format: another
// number of dimensions, dtypes that the libraries have no such kernels for.
std::optional<Convolution> find_convolution(const Graph& graph, NodeId call);

// The seconds that channels-last operands save a convolution on the tensors' device; negative where
// they cost time.
double seconds_saved(const Graph& graph, const Convolution& convolution);

// The seconds that copying such a tensor takes.
double seconds_to_copy(const TensorMeta& tensor);

}  // namespace litz
