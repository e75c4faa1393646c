// Images sampled where a grid of coordinates says: (x, y) from -1 to 1 over the image.
#include "lowering/pooling_rows.h"
#include "lowering/reduction_helpers.h"

namespace litz {
namespace {

using Lowered = std::optional<Unsupported>;
using Position = std::span<const Index>;

enum class Interpolation : int64_t { kBilinear = 0, kNearest = 1 };
enum class Padding : int64_t { kZeros = 0, kBorder = 1, kReflection = 2 };

// One axis of the image: from a coordinate of the grid to one in pixels.
class SampledAxis {
 public:
  SampledAxis(OpCall& call, Index size, DType dtype, bool align_corners, Padding padding)
      : size_(index_as(call, size, dtype)), align_corners_(align_corners), padding_(padding) {}

  Expr pixel(Expr given) const {
    const Expr place =
        align_corners_ ? (given + 1) * ((size_ - 1) / 2) : (given + 1) * (size_ / 2) - 0.5;
    switch (padding_) {
      case Padding::kZeros:
        return place;
      case Padding::kBorder:
        return clipped(place);
      case Padding::kReflection:
        return clipped(reflected(place));
    }
    return place;
  }

  Expr is_inside(Expr pixel) const { return both(greater_equal(pixel, 0), less(pixel, size_)); }

 private:
  // NaN becomes 0.
  Expr clipped(Expr place) const {
    const Expr positive = select(greater(place, 0), place, 0.0);
    return minimum(positive, size_ - 1);
  }

  // Between the centres of the outer pixels, or between their edges.
  Expr reflected(Expr place) const {
    const double low = align_corners_ ? 0 : -0.5;
    const Expr span = (align_corners_ ? size_ - 1 : size_) * 2;
    const Expr distance = absolute(align_corners_ ? place : place - low);
    const Expr extra = distance - truncate(distance / span) * span;
    const Expr folded = minimum(extra, span - extra);
    return align_corners_ ? select(greater(span, 0), folded, 0.0) : folded + low;
  }

  Expr size_;
  bool align_corners_;
  Padding padding_;
};

// The pixel at whole coordinates, 0 outside of the image.
Expr load_pixel(OpCall& call, const TensorValue& input, Position p, const SampledAxis& rows,
                const SampledAxis& columns, Expr y, Expr x) {
  const Expr inside = both(rows.is_inside(y), columns.is_inside(x));
  const auto index = [&](Expr place, Index size) {
    return call.exprs().check_index(cast(select(inside, place, 0.0), DType::kInt64), size);
  };
  const Index at[] = {p[0], p[1], call.indices().indirect(0, input.sizes[2]),
                      call.indices().indirect(1, input.sizes[3])};
  const Expr pixel = call.load(input, at, {{index(y, input.sizes[2]), index(x, input.sizes[3])}});
  return select(inside, pixel, 0.0);
}

Lowered lower_grid_sampler(OpCall& call) {
  const TensorValue input = call.tensor("input");
  const TensorValue grid = call.tensor("grid");
  const int64_t mode = call.integer("interpolation_mode");
  if (mode > static_cast<int64_t>(Interpolation::kNearest))
    return Unsupported{"the interpolation is bicubic"};
  // Eager rounds halves at every step.
  if (is_half(input.dtype)) return Unsupported{"the input is of a half dtype"};
  if (!is_floating(input.dtype) || input.dtype != grid.dtype)
    return Unsupported{"the input and the grid are not of one floating dtype"};
  if (is_empty(call, input.sizes)) return Unsupported{"the input is empty"};
  const auto padding = static_cast<Padding>(call.integer("padding_mode"));
  const bool align_corners = call.boolean("align_corners");
  const SampledAxis rows(call, input.sizes[2], input.dtype, align_corners, padding);
  const SampledAxis columns(call, input.sizes[3], input.dtype, align_corners, padding);

  set_pointwise(call, 0, [&](Position p) {
    const auto given = [&](int64_t coordinate) {
      const Index at[] = {p[0], p[2], p[3], call.indices().constant(coordinate)};
      return call.load(grid, at);
    };
    const Expr x = columns.pixel(given(0));
    const Expr y = rows.pixel(given(1));
    const auto pixel = [&](Expr row, Expr column) {
      return load_pixel(call, input, p, rows, columns, row, column);
    };
    if (mode == static_cast<int64_t>(Interpolation::kNearest))
      return pixel(apply<ExprOp::kRound>(y), apply<ExprOp::kRound>(x));
    const Expr west = apply<ExprOp::kFloor>(x);
    const Expr north = apply<ExprOp::kFloor>(y);
    const Expr to_east = x - west;
    const Expr to_south = y - north;
    return pixel(north, west) * ((1 - to_east) * (1 - to_south)) +
           pixel(north, west + 1) * (to_east * (1 - to_south)) +
           pixel(north + 1, west) * ((1 - to_east) * to_south) +
           pixel(north + 1, west + 1) * (to_east * to_south);
  });
  return std::nullopt;
}

constexpr LoweringRow kRows[] = {
    {"aten::grid_sampler_2d", lower_grid_sampler},
};

}  // namespace

std::span<const LoweringRow> grid_sampling_rows() { return kRows; }

}  // namespace litz
