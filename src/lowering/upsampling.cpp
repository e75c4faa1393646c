// Upsampling: nearest neighbours and bilinear interpolation. The place that an output comes from is
// computed in float32, as eager does, since its rounding decides between two neighbours.
#include "lowering/index_helpers.h"
#include "lowering/pooling_rows.h"
#include "lowering/reduction_helpers.h"

namespace litz {
namespace {

using Lowered = std::optional<Unsupported>;
using Position = std::span<const Index>;

// One upsampled dimension.
struct Axis {
  Index input;
  Index output;
  std::optional<double> scale;  // as the caller gave it
};

// The upsampled dimensions, which are all but the first two, from `input` to `output`. The scales
// are one list, or an argument each.
std::vector<Axis> upsampled_axes(const OpCall& call, std::span<const Index> input,
                                 std::span<const Index> output) {
  const OpSchema& schema = *call.node().schema;
  const size_t count = input.size() - 2;
  std::vector<Argument> scales(count);
  if (schema.find("scale_factors") >= 0) {
    const Argument& list = call.argument("scale_factors");
    if (list.is_list()) scales = list.get<ArgumentList>();
  } else if (count == 1) {
    scales[0] = call.argument("scales");
  } else {
    scales = {call.argument("scales_h"), call.argument("scales_w")};
  }
  std::vector<Axis> axes;
  for (size_t i = 0; i < count; ++i) {
    const auto* scale = std::get_if<double>(&scales[i].v);
    axes.push_back({input[2 + i], output[2 + i],
                    scale != nullptr && *scale > 0 ? std::optional<double>(*scale) : std::nullopt});
  }
  return axes;
}

const TensorValue& input_of(const OpCall& call) {
  return call.tensor(call.node().schema->arguments[0].name);
}

// Input elements for an output element, in `dtype`.
Expr step(OpCall& call, const Axis& axis, DType dtype) {
  if (axis.scale) return cast(call.exprs().constant(DType::kFloat64, 1 / *axis.scale), dtype);
  return index_as(call, axis.input, dtype) / index_as(call, axis.output, dtype);
}

// ---- nearest ----

// Adds the coordinate that an output at `at` copies; what is no index expression goes to `runtime`.
void add_nearest(OpCall& call, const Axis& axis, Index at, bool exact,
                 std::vector<Index>* coordinates, std::vector<Expr>* runtime) {
  if (axis.input == axis.output) {
    coordinates->push_back(at);
    return;
  }
  if (axis.output == axis.input * 2) {
    coordinates->push_back(floor_div(at, 2));
    return;
  }
  Expr place = index_as(call, at, DType::kFloat32);
  if (exact) place = place + 0.5;
  place = apply<ExprOp::kFloor>(place * step(call, axis, DType::kFloat32));
  const Expr source = minimum(cast(place, DType::kInt64), call.exprs().index_value(axis.input - 1));
  coordinates->push_back(
      call.indices().indirect(static_cast<uint32_t>(runtime->size()), axis.input));
  runtime->push_back(call.exprs().check_index(source, axis.input));
}

Lowered lower_nearest_to(OpCall& call, bool exact) {
  const TensorValue input = input_of(call);
  const std::vector<Axis> axes = upsampled_axes(call, input.sizes, call.result().sizes);
  set_pointwise(call, 0, [&](Position p) {
    std::vector<Index> coordinates = {p[0], p[1]};
    std::vector<Expr> runtime;
    for (size_t i = 0; i < axes.size(); ++i)
      add_nearest(call, axes[i], p[2 + i], exact, &coordinates, &runtime);
    return call.load(input, coordinates, runtime);
  });
  return std::nullopt;
}

// Every output adds its gradient to the input that it copied.
Lowered lower_nearest_backward_to(OpCall& call, bool exact) {
  const TensorValue grad = call.tensor("grad_output");
  const std::vector<Axis> axes = upsampled_axes(call, call.result().sizes, grad.sizes);
  const auto zero = [&](Position) { return call.exprs().constant(call.result().dtype, 0); };
  set_scatter(call, zero, StoreMode::kAdd, grad.sizes, [&](Position p) {
    OpCall::Store store{{p[0], p[1]}, {}, call.load(grad, p)};
    for (size_t i = 0; i < axes.size(); ++i)
      add_nearest(call, axes[i], p[2 + i], exact, &store.target, &store.runtime_indices);
    return store;
  });
  return std::nullopt;
}

Lowered lower_nearest(OpCall& call) { return lower_nearest_to(call, false); }
Lowered lower_nearest_exact(OpCall& call) { return lower_nearest_to(call, true); }
Lowered lower_nearest_backward(OpCall& call) { return lower_nearest_backward_to(call, false); }
Lowered lower_nearest_exact_backward(OpCall& call) { return lower_nearest_backward_to(call, true); }

// ---- bilinear ----

// The two neighbours on one axis, and the weight of the second.
struct Neighbours {
  Expr first;
  Expr second;
  Expr weight;
};

Neighbours find_neighbours(OpCall& call, const Axis& axis, Index at, bool align_corners,
                           DType dtype) {
  ExprContext& exprs = call.exprs();
  Expr place = index_as(call, at, dtype);
  if (align_corners) {
    const Expr last = index_as(call, axis.output - 1, dtype);
    const Expr ratio = index_as(call, axis.input - 1, dtype) / last;
    place = place * select(greater(last, 0), ratio, 0.0);
  } else {
    place = maximum((place + 0.5) * step(call, axis, dtype) - 0.5, 0);
  }
  const Expr last = exprs.index_value(axis.input - 1);
  const Expr first = minimum(cast(place, DType::kInt64), last);
  const Expr weight = minimum(maximum(place - cast(first, dtype), 0), 1);
  return {exprs.check_index(first, axis.input),
          exprs.check_index(minimum(first + 1.0, last), axis.input), weight};
}

Lowered lower_bilinear(OpCall& call) {
  const TensorValue input = input_of(call);
  if (!is_floating(input.dtype)) return Unsupported{"the input is not floating-point"};
  const bool align_corners = call.boolean("align_corners");
  const std::vector<Axis> axes = upsampled_axes(call, input.sizes, call.result().sizes);
  const DType dtype = computation_dtype(input.dtype);
  set_pointwise(call, 0, [&](Position p) {
    const Neighbours rows = find_neighbours(call, axes[0], p[2], align_corners, dtype);
    const Neighbours columns = find_neighbours(call, axes[1], p[3], align_corners, dtype);
    const Index at[] = {p[0], p[1], call.indices().indirect(0, axes[0].input),
                        call.indices().indirect(1, axes[1].input)};
    const auto in_row = [&](Expr row) {
      const Expr left = cast(call.load(input, at, {{row, columns.first}}), dtype);
      const Expr right = cast(call.load(input, at, {{row, columns.second}}), dtype);
      return (1 - columns.weight) * left + columns.weight * right;
    };
    return (1 - rows.weight) * in_row(rows.first) + rows.weight * in_row(rows.second);
  });
  return std::nullopt;
}

// Every output adds its gradient to four inputs, by their weights; the last two dimensions of the
// stores say which.
Lowered lower_bilinear_backward(OpCall& call) {
  const TensorValue grad = call.tensor("grad_output");
  if (!is_floating(grad.dtype)) return Unsupported{"the gradient is not floating-point"};
  const bool align_corners = call.boolean("align_corners");
  const std::vector<Axis> axes = upsampled_axes(call, call.result().sizes, grad.sizes);
  const DType dtype = computation_dtype(grad.dtype);
  const Index two = call.indices().constant(2);
  std::vector<Index> sizes = grad.sizes;
  sizes.insert(sizes.end(), {two, two});
  const auto zero = [&](Position) { return call.exprs().constant(call.result().dtype, 0); };
  set_scatter(call, zero, StoreMode::kAdd, sizes, [&](Position p) {
    OpCall::Store store{{p[0], p[1]}, {}, cast(call.load(grad, p.first(4)), dtype)};
    for (size_t i = 0; i < 2; ++i) {
      const Neighbours found = find_neighbours(call, axes[i], p[2 + i], align_corners, dtype);
      const Expr is_first = equal(call.exprs().index_value(p[4 + i]), 0);
      store.target.push_back(call.indices().indirect(static_cast<uint32_t>(i), axes[i].input));
      store.runtime_indices.push_back(select(is_first, found.first, found.second));
      store.value = store.value * select(is_first, 1 - found.weight, found.weight);
    }
    return store;
  });
  return std::nullopt;
}

constexpr LoweringRow kRows[] = {
    {"aten::upsample_nearest1d", lower_nearest},
    {"aten::upsample_nearest1d.vec", lower_nearest},
    {"aten::upsample_nearest2d", lower_nearest},
    {"aten::upsample_nearest2d.vec", lower_nearest},
    {"aten::_upsample_nearest_exact1d", lower_nearest_exact},
    {"aten::_upsample_nearest_exact1d.vec", lower_nearest_exact},
    {"aten::_upsample_nearest_exact2d", lower_nearest_exact},
    {"aten::_upsample_nearest_exact2d.vec", lower_nearest_exact},
    {"aten::upsample_nearest1d_backward", lower_nearest_backward},
    {"aten::upsample_nearest2d_backward", lower_nearest_backward},
    {"aten::_upsample_nearest_exact1d_backward", lower_nearest_exact_backward},
    {"aten::_upsample_nearest_exact2d_backward", lower_nearest_exact_backward},
    {"aten::upsample_bilinear2d_backward", lower_bilinear_backward},
    {"aten::upsample_bilinear2d", lower_bilinear},
    {"aten::upsample_bilinear2d.vec", lower_bilinear},
};

}  // namespace

std::span<const LoweringRow> upsampling_rows() { return kRows; }

}  // namespace litz
