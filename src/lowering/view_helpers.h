// What rows of the view family are made of.
#pragma once

#include <optional>
#include <vector>

#include "lowering/lowering.h"
#include "lowering/pointwise_helpers.h"

namespace litz {

// Makes the view for one result of the call, or says why it cannot. Nothing may be added to the
// program before the reason is known.
using ViewFunction = Result<TensorValue> (*)(OpCall& call, size_t output);

// A row whose results are views: windows that compute nothing.
template <ViewFunction make_view>
std::optional<Unsupported> lower_view(OpCall& call) {
  std::vector<TensorValue> views;
  for (size_t i = 0; i < call.num_results(); ++i) {
    Result<TensorValue> view = make_view(call, i);
    if (!view) return Unsupported{view.reason()};
    views.push_back(std::move(*view));
  }
  for (size_t i = 0; i < views.size(); ++i) call.set(i, std::move(views[i]));
  return std::nullopt;
}

// A row whose results are copies of such views.
template <ViewFunction make_view>
std::optional<Unsupported> lower_copied_view(OpCall& call) {
  std::vector<TensorValue> views;
  for (size_t i = 0; i < call.num_results(); ++i) {
    Result<TensorValue> view = make_view(call, i);
    if (!view) return Unsupported{view.reason()};
    views.push_back(std::move(*view));
  }
  for (size_t i = 0; i < views.size(); ++i) {
    call.set(i, call.pointwise(call.result(i), [&](std::span<const Index> position) {
      return call.load(views[i], position);
    }));
  }
  return std::nullopt;
}

// The same elements in row-major order under other sizes.
TensorValue reshaped(OpCall& call, const TensorValue& base, std::span<const Index> sizes);

// `start` as slicing means it in a dimension of `size`: negative counts from the end, out of range
// is clamped; nullopt where the sign is not known.
std::optional<Index> normalize_start(Index start, Index size);

// The normalized dimension argument of this name.
size_t dim_argument(const OpCall& call, std::string_view name, size_t rank);
// A list of them.
std::vector<size_t> dim_list_argument(const OpCall& call, std::string_view name, size_t rank);

std::span<const LoweringRow> window_view_rows();

}  // namespace litz
