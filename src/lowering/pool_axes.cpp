#include "lowering/pool_axes.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "lowering/reduction_helpers.h"

namespace litz {
namespace {

// An argument of one or two numbers; `fallback` where it is empty.
std::array<int64_t, 2> pair(const OpCall& call, std::string_view name,
                            std::array<int64_t, 2> fallback) {
  if (call.node().schema->find(name) < 0) return fallback;
  const std::vector<int64_t> given = call.integer_list(name);
  if (given.empty()) return fallback;
  return {given.front(), given.back()};
}

std::optional<AdaptiveAxis> adaptive_axis(const OpCall& call, Index input, Index output) {
  IndexContext& indices = call.indices();
  if (const std::optional<Index> exact = exact_div(input, output))
    return AdaptiveAxis{input, output, *exact, indices.constant(1)};
  if (!input.is_constant() || !output.is_constant()) return std::nullopt;
  const int64_t n = input.constant();
  const int64_t m = output.constant();
  int64_t taps = 0;
  std::vector<int64_t> windows(static_cast<size_t>(n), 0);
  int64_t most = 0;
  for (int64_t o = 0; o < m; ++o) {
    const int64_t start = o * n / m;
    const int64_t end = ((o + 1) * n + m - 1) / m;
    taps = std::max(taps, end - start);
    for (int64_t i = start; i < end; ++i) most = std::max(most, ++windows[static_cast<size_t>(i)]);
  }
  return AdaptiveAxis{input, output, indices.constant(taps), indices.constant(most)};
}

}  // namespace

std::array<PoolAxis, 2> pool_axes(const OpCall& call, std::span<const Index> input,
                                  std::span<const Index> output) {
  const auto kernel = pair(call, "kernel_size", {1, 1});
  const auto stride = pair(call, "stride", kernel);
  const auto padding = pair(call, "padding", {0, 0});
  const auto dilation = pair(call, "dilation", {1, 1});
  std::array<PoolAxis, 2> axes;
  for (size_t i = 0; i < 2; ++i) {
    axes[i] = {kernel[i],
               stride[i],
               padding[i],
               dilation[i],
               input[input.size() - 2 + i],
               output[output.size() - 2 + i]};
  }
  return axes;
}

WindowAxis pool_window(OpCall& call, const PoolAxis& axis) {
  return {
      call.indices().constant(axis.kernel),
      [axis](Index at, Index tap) { return axis.tap(at, tap); },
      [axis, &call](Index at, Index tap) { return in_range(call, axis.tap(at, tap), axis.input); }};
}

std::optional<std::array<AdaptiveAxis, 2>> adaptive_axes(const OpCall& call,
                                                         std::span<const Index> input,
                                                         std::span<const Index> output) {
  if (is_empty(call, input) || is_empty(call, output)) return std::nullopt;
  std::array<AdaptiveAxis, 2> axes;
  for (size_t i = 0; i < 2; ++i) {
    const std::optional<AdaptiveAxis> axis =
        adaptive_axis(call, input[input.size() - 2 + i], output[output.size() - 2 + i]);
    if (!axis) return std::nullopt;
    axes[i] = *axis;
  }
  return axes;
}

WindowAxis adaptive_window(OpCall& call, const AdaptiveAxis& axis) {
  return {axis.taps, [axis](Index at, Index tap) { return axis.start(at) + tap; },
          [axis, &call](Index at, Index tap) {
            return is_less(call, axis.start(at) + tap, axis.end(at));
          }};
}

}  // namespace litz
