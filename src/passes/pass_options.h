// What the options of a compilation mean to the graph passes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "graph/convolution_kernels.h"
#include "graph/graph.h"
#include "graph/library_fallbacks.h"

namespace litz {

enum class LayoutOptimization : uint8_t { kOff, kOn, kAuto };

// Which convolutions on a CPU become products that are kernels.
enum class ConvolutionProducts : uint8_t {
  kOff,
  kAuto,  // of which a model says that they are faster than the library
  kOn,    // all that can be
};

struct PassOptions : LibraryFallbacks {
  // Whether convolutions get channels-last operands: never, always, or where it pays.
  LayoutOptimization layout_optimization = LayoutOptimization::kAuto;
  // The library multiplies all matrices on a CPU; else kernels do.
  bool library_products = true;
  ConvolutionProducts convolution_products = ConvolutionProducts::kOff;
  // By convolution_key: whether they are kernels, whatever the model says.
  std::map<std::string, bool> kernel_choices;
  std::optional<bool> choice(const Graph& graph, const Node& convolution) const {
    if (kernel_choices.empty()) return std::nullopt;
    const auto found = kernel_choices.find(convolution_key(graph, convolution));
    return found == kernel_choices.end() ? std::nullopt : std::optional(found->second);
  }
  // On a CPU attention of float32, and of half floats, is a kernel; else the library's call.
  bool attention_kernels = false;
  bool float16_attention_kernels = false;
  bool bfloat16_attention_kernels = false;
  bool attention_kernels_of(DType dtype) const {
    if (dtype == DType::kFloat16) return float16_attention_kernels;
    return dtype == DType::kBFloat16 ? bfloat16_attention_kernels : attention_kernels;
  }
  // Columns of a panel that product kernels read; 0 where there are no such kernels.
  int64_t panel_columns = 0;
  // They multiply pairs of bfloat16, and do it in a matrix unit.
  bool multiplies_pairs = false;
  bool multiplies_tiles = false;
  // Whether kernels convolve tensors of this type.
  bool convolves(DType dtype) const {
    return dtype == DType::kFloat32 || (dtype == DType::kBFloat16 && multiplies_pairs);
  }
};

}  // namespace litz
