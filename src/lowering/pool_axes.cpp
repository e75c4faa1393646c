#include "lowering/pool_axes.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "lowering/reduction_helpers.h"

namespace litz {
namespace {

// An argument of one number, or one for each dimension; `fallback` where it is empty.
std::vector<int64_t> numbers(const OpCall& call, std::string_view name,
                             const std::vector<int64_t>& fallback) {
  if (call.node().schema->find(name) < 0) return fallback;
  std::vector<int64_t> given = call.integer_list(name);
  if (given.empty()) return fallback;
  given.resize(fallback.size(), given.front());
  return given;
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

std::vector<PoolAxis> pool_axes(const OpCall& call, size_t dims, std::span<const Index> input,
                                std::span<const Index> output) {
  const std::vector<int64_t> ones(dims, 1);
  const auto kernel = numbers(call, "kernel_size", ones);
  const auto stride = numbers(call, "stride", kernel);
  const auto padding = numbers(call, "padding", std::vector<int64_t>(dims, 0));
  const auto dilation = numbers(call, "dilation", ones);
  std::vector<PoolAxis> axes;
  for (size_t i = 0; i < dims; ++i) {
    axes.push_back({kernel[i], stride[i], padding[i], dilation[i], input[input.size() - dims + i],
                    output[output.size() - dims + i]});
  }
  return axes;
}

WindowAxis pool_window(OpCall& call, const PoolAxis& axis) {
  return {
      call.indices().constant(axis.kernel),
      [axis](Index at, Index tap) { return axis.tap(at, tap); },
      [axis, &call](Index at, Index tap) { return in_range(call, axis.tap(at, tap), axis.input); }};
}

std::optional<std::vector<AdaptiveAxis>> adaptive_axes(const OpCall& call, size_t dims,
                                                       std::span<const Index> input,
                                                       std::span<const Index> output) {
  if (is_empty(call, input) || is_empty(call, output)) return std::nullopt;
  std::vector<AdaptiveAxis> axes;
  for (size_t i = 0; i < dims; ++i) {
    const std::optional<AdaptiveAxis> axis =
        adaptive_axis(call, input[input.size() - dims + i], output[output.size() - dims + i]);
    if (!axis) return std::nullopt;
    axes.push_back(*axis);
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
