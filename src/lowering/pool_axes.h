// How the windows of pools lie on the last dimensions of their input: two for planes, three for
// volumes.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lowering/lowering.h"
#include "lowering/window.h"

namespace litz {

// How a window moves along one axis of the input.
struct PoolAxis {
  int64_t kernel;
  int64_t stride;
  int64_t padding;
  int64_t dilation;
  Index input;
  Index output;

  Index start(Index at) const { return at * stride - padding; }
  Index tap(Index at, Index number) const { return start(at) + number * dilation; }
};

// As the call's arguments say, for the last `dims` dimensions of tensors of these sizes.
std::vector<PoolAxis> pool_axes(const OpCall& call, size_t dims, std::span<const Index> input,
                                std::span<const Index> output);
// The taps of an output's window.
WindowAxis pool_window(OpCall& call, const PoolAxis& axis);

// Output o looks at the inputs from floor(o * input / output) up to ceil((o + 1) * input / output).
struct AdaptiveAxis {
  Index input;
  Index output;
  Index taps;     // of the largest window
  Index windows;  // that one input is in, at most

  Index start(Index at) const { return floor_div(at * input, output); }
  Index end(Index at) const { return ceil_div((at + 1) * input, output); }
};

// nullopt where the sizes are neither known nor multiples, or there is nothing.
std::optional<std::vector<AdaptiveAxis>> adaptive_axes(const OpCall& call, size_t dims,
                                                       std::span<const Index> input,
                                                       std::span<const Index> output);
WindowAxis adaptive_window(OpCall& call, const AdaptiveAxis& axis);
inline constexpr const char* kUnknownWindows = "its windows depend on symbolic sizes, or are empty";

}  // namespace litz
