// Which convolutions of channels-last images on a CPU kernels compute, as the passes that prepare
// for them and lowering have to agree on.
#pragma once

#include <cstdint>
#include <string>

#include "graph/graph.h"

namespace litz {

// What tells convolutions apart that take different time: sizes, the layout of the image, strides
// and the like. Of static sizes, whatever the layout of the weight.
std::string convolution_key(const Graph& graph, const Node& convolution);

struct ConvolutionSizes {
  bool is_depthwise = false;
  int64_t channels = 0;  // of the image
  int64_t outputs = 0;
  int64_t factors = 0;  // of an element of the result
  bool of_halves = false;
  bool matrix_unit = false;  // a kernel multiplies with it
};

// A kernel packs whole columns of factors on the stack.
inline constexpr int64_t kMostConvolutionFactors = 8192;

// `forced`: wherever a kernel can. On one thread of an AVX2 machine depthwise convolutions take
// half of oneDNN's time, those of images with few channels 0.8 of it. Others take 0.9 to 1.2 times
// as long, with packed weights the more. In the tiles of AMX bfloat16 pays
// where there are channels for them.
inline bool is_convolution_kernel(const ConvolutionSizes& sizes, bool forced) {
  constexpr int64_t kFewestChannels = 16;  // two or one vectors
  constexpr int64_t kFewChannels = 8;
  if (sizes.is_depthwise) return sizes.channels >= kFewestChannels;
  if (sizes.channels < 2 || sizes.outputs < 2 || sizes.factors > kMostConvolutionFactors)
    return false;
  if (forced) return true;
  if (sizes.outputs < kFewestChannels) return false;
  return sizes.of_halves ? sizes.matrix_unit && sizes.channels >= kFewestChannels
                         : sizes.channels < kFewChannels;
}

}  // namespace litz
