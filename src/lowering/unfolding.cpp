// im2col and col2im: the windows of images as columns, and columns added up to images. Column
// (c, i, j) at place (y, x) is the pixel at tap (i, j) of the window there, zero where that lies in
// the padding.
#include <array>

#include "lowering/index_helpers.h"
#include "lowering/join_rows.h"
#include "lowering/reduction_helpers.h"
#include "lowering/window.h"

namespace litz {
namespace {

using Lowered = std::optional<Unsupported>;
using Position = std::span<const Index>;

struct Axis {
  Index size;
  int64_t kernel;
  int64_t dilation;
  int64_t padding;
  int64_t stride;

  Index places() const {
    return floor_div(size + (2 * padding - dilation * (kernel - 1) - 1), stride) + 1;
  }
};
using Axes = std::array<Axis, 2>;

// `image` are the sizes of the images' last two dimensions.
Axes read_axes(const OpCall& call, std::span<const Index> image) {
  Axes axes;
  const auto number = [&](std::string_view name, size_t i) {
    const std::vector<int64_t> given = call.integer_list(name);
    return given.size() == 1 ? given[0] : given[i];
  };
  for (size_t i = 0; i < 2; ++i) {
    axes[i] = {image[i], number("kernel_size", i), number("dilation", i), number("padding", i),
               number("stride", i)};
  }
  return axes;
}

// The pixel that an element of the columns is.
struct Pixel {
  std::vector<Index> position;
  Expr is_inside;
};
Pixel pixel_of(OpCall& call, const Axes& axes, Position column) {
  const Index row = column[column.size() - 2];
  const std::array<Index, 2> tap = {mod(floor_div(row, axes[1].kernel), axes[0].kernel),
                                    mod(row, axes[1].kernel)};
  const std::array<Index, 2> place = {floor_div(column.back(), axes[1].places()),
                                      mod(column.back(), axes[1].places())};
  Pixel pixel{{column.begin(), column.end() - 2}, call.exprs().constant_int(DType::kBool, 1)};
  pixel.position.push_back(floor_div(row, axes[0].kernel * axes[1].kernel));
  for (size_t i = 0; i < 2; ++i) {
    const Index at = place[i] * axes[i].stride + tap[i] * axes[i].dilation - axes[i].padding;
    pixel.is_inside = conjunction(pixel.is_inside, in_range(call, at, axes[i].size));
    pixel.position.push_back(at);
  }
  return pixel;
}

Lowered lower_im2col(OpCall& call) {
  const TensorValue image = call.tensor("self");
  const Axes axes = read_axes(call, std::span(image.sizes).last(2));
  call.set(0, call.pointwise(call.result(), [&](Position p) {
    const Pixel pixel = pixel_of(call, axes, p);
    return call.exprs().masked(pixel.is_inside, call.load(image, pixel.position),
                               call.exprs().constant(image.dtype, 0));
  }));
  return std::nullopt;
}

Lowered lower_col2im(OpCall& call) {
  const TensorValue columns = call.tensor("self");
  const std::vector<Index>& sizes = call.result().sizes;
  if (is_empty(call, sizes)) return Unsupported{"the result is empty"};
  const Axes axes = read_axes(call, std::span(sizes).last(2));
  const auto zero = [&](Position) { return call.exprs().constant(call.result().dtype, 0); };
  set_scatter(call, zero, StoreMode::kAdd, columns.sizes, [&](Position p) {
    Pixel pixel = pixel_of(call, axes, p);
    // What lies in the padding adds nothing to some pixel.
    const size_t rank = pixel.position.size();
    for (size_t i = rank - 2; i < rank; ++i) {
      pixel.position[i] =
          smaller(larger(pixel.position[i], call.indices().constant(0)), sizes[i] - 1);
    }
    const Expr value = call.load(columns, p);
    return OpCall::Store{
        pixel.position,
        {},
        call.exprs().where(pixel.is_inside, value, call.exprs().constant(value.dtype(), 0))};
  });
  return std::nullopt;
}

constexpr LoweringRow kRows[] = {
    {"aten::im2col", lower_im2col},
    {"aten::col2im", lower_col2im},
};

}  // namespace

std::span<const LoweringRow> unfolding_rows() { return kRows; }

}  // namespace litz
