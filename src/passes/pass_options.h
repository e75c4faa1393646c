// What the options of a compilation mean to the graph passes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace litz {

enum class LayoutOptimization : uint8_t { kOff, kOn, kAuto };

// Which convolutions on a CPU become products that are kernels.
enum class ConvolutionProducts : uint8_t {
  kOff,
  kAuto,  // of which a model says that they are faster than the library
  kOn,    // all that can be
};

struct PassOptions {
  // Whether convolutions get channels-last operands: never, always, or where it pays.
  LayoutOptimization layout_optimization = LayoutOptimization::kAuto;
  // The library multiplies all matrices on a CPU; else kernels do.
  bool library_products = true;
  ConvolutionProducts convolution_products = ConvolutionProducts::kOff;
  // Ops and nodes that stay calls of the library's, as lowering has it.
  bool fallback_everything = false;
  std::vector<std::string> fallback_ops;
  std::vector<std::string> fallback_nodes;

  bool is_library_call(const Node& node) const;
};

}  // namespace litz
