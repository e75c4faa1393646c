// Matrix products and convolutions on a CPU that are kernels instead of library calls
// (codegen/cpp/cpp_product.h, codegen/cpp/cpp_window.h).
#include <algorithm>
#include <array>

#include "graph/convolution_kernels.h"
#include "graph/packed_linear.h"
#include "lowering/lowering_context.h"
#include "lowering/reduction_helpers.h"
#include "lowering/window.h"

namespace litz {
namespace {

constexpr int64_t kMostFactors = kMostConvolutionFactors;

// The matrices of a kernel lie in memory row by row or column by column.
bool has_neighbours(const Program& program, const TensorValue& value) {
  if (!value.strided || value.dtype != program.buffer(value.buffer).dtype) return false;
  const std::vector<Index>& strides = value.strided->strides;
  const size_t rank = value.rank();
  return std::all_of(strides.begin(), strides.end(), [](Index s) { return s.is_constant(); }) &&
         (strides[rank - 1].is_constant(1) || strides[rank - 2].is_constant(1));
}

// Its elements lie at sums of constants times coordinates: of some views that is not known.
bool is_linear(const Program& program, const TensorValue& value) {
  IndexContext& context = program.indices();
  std::vector<Index> position;
  for (size_t i = 0; i < value.rank(); ++i)
    position.push_back(context.variable(static_cast<uint32_t>(i), value.sizes[i]));
  Index offset =
      dot(context, coordinates_at(value, position), program.buffer(value.buffer).strides);
  for (Index p : position) {
    if (!p.is_symbol()) continue;
    const std::optional<LinearIn> linear = linear_in(offset, p);
    if (!linear || !linear->stride.is_constant()) return false;
    offset = linear->rest;
  }
  return true;
}

struct Extents {
  int64_t batches = 1;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t factors = 0;
};

std::optional<Extents> extents_of(const TensorValue& left, const TensorValue& right) {
  for (const TensorValue* value : {&left, &right}) {
    for (Index size : value->sizes) {
      if (!size.is_constant()) return std::nullopt;
    }
  }
  Extents extents;
  const size_t rank = left.rank();
  for (size_t i = 0; i + 2 < rank; ++i) extents.batches *= left.sizes[i].constant();
  extents.rows = left.sizes[rank - 2].constant();
  extents.factors = left.sizes[rank - 1].constant();
  extents.columns = right.sizes[rank - 1].constant();
  return extents;
}

bool is_worth_a_kernel(const Extents& extents) {
  return extents.batches * extents.rows * extents.columns * extents.factors >= kFewestMultiplyAdds;
}

bool pays(const Extents& extents) {
  return extents.columns >= 16 && extents.factors >= 16 && is_worth_a_kernel(extents);
}

// A list that has one entry for both dimensions, or one for each.
std::optional<std::vector<int64_t>> of_image(const OpCall& call, std::string_view name) {
  std::vector<int64_t> values;
  for (Index value : call.index_list(name)) {
    if (!value.is_constant()) return std::nullopt;
    values.push_back(value.constant());
  }
  if (values.size() == 1) values.push_back(values[0]);
  return values.size() == 2 ? std::optional(values) : std::nullopt;
}

bool is_sized(const TensorValue& value) {
  return std::all_of(value.sizes.begin(), value.sizes.end(),
                     [](Index size) { return size.is_constant() && size.constant() > 0; });
}

// Of images: height and width.
struct Geometry {
  std::vector<int64_t> stride;
  std::vector<int64_t> padding;
  std::vector<int64_t> dilation;

  // Where a tap lies in the input.
  Index at(size_t d, Index pixel, Index tap) const {
    return pixel * stride[d] + tap * dilation[d] - padding[d];
  }
};

// [image, row, pixel, channel] of a depthwise convolution.
TensorValue sum_windows(OpCall& call, const TensorValue& input, const TensorValue& weight,
                        const Geometry& geometry) {
  const std::vector<Index>& out = call.result().sizes;
  const std::vector<Index> sizes = {out[0], out[2],          out[3],
                                    out[1], weight.sizes[2], weight.sizes[3]};
  const std::array<size_t, 2> taps = {4, 5};
  return call.reduce(ReductionKind::kSum, sizes, taps, false, [&](std::span<const Index> p) {
    const Index y = geometry.at(0, p[1], p[4]);
    const Index x = geometry.at(1, p[2], p[5]);
    const Expr product =
        call.load(input, std::array{p[0], p[3], y, x}) *
        call.load(weight, std::array{p[3], call.indices().constant(0), p[4], p[5]});
    const Expr inside =
        conjunction(in_range(call, y, input.sizes[2]), in_range(call, x, input.sizes[3]));
    return call.exprs().masked(inside, product, number(product, 0));
  });
}

// The input with zeros around it, as [image, row, pixel, channel].
TensorValue padded_input(OpCall& call, const TensorValue& input, const Geometry& geometry) {
  const std::array<Index, 4> sizes = {input.sizes[0], input.sizes[2] + 2 * geometry.padding[0],
                                      input.sizes[3] + 2 * geometry.padding[1], input.sizes[1]};
  const auto in_input = [&](std::span<const Index> p) {
    return std::vector<Index>{p[0], p[3], p[1] - geometry.padding[0], p[2] - geometry.padding[1]};
  };
  if (geometry.padding[0] == 0 && geometry.padding[1] == 0)
    return call.view(input, sizes, in_input);
  return call.pointwise(input.dtype, sizes, [&](std::span<const Index> p) {
    const std::vector<Index> at = in_input(p);
    const Expr value = call.load(input, at);
    const Expr inside =
        conjunction(in_range(call, at[2], input.sizes[2]), in_range(call, at[3], input.sizes[3]));
    return call.exprs().masked(inside, value, number(value, 0));
  });
}

// The same of a convolution of all channels with each other: for each row and tap a product of a
// row of pixels and a part of the weight.
TensorValue sum_products(OpCall& call, const TensorValue& input, const TensorValue& weight,
                         const Geometry& geometry) {
  const TensorValue padded = padded_input(call, input, geometry);
  const std::vector<Index>& out = call.result().sizes;
  const std::vector<Index> sizes = {out[0],          out[2],          out[3],         out[1],
                                    weight.sizes[2], weight.sizes[3], weight.sizes[1]};
  const std::array<size_t, 3> factors = {4, 5, 6};
  return call.reduce(ReductionKind::kSum, sizes, factors, false, [&](std::span<const Index> p) {
    const Index y = geometry.at(0, p[1], p[4]) + geometry.padding[0];
    const Index x = geometry.at(1, p[2], p[5]) + geometry.padding[1];
    return load_wide(call, padded, std::array{p[0], y, x, p[6]}) *
           load_wide(call, weight, std::array{p[3], p[6], p[4], p[5]});
  });
}

}  // namespace

bool LoweringContext::compute_convolution_on_cpu(NodeId id) {
  const Node& node = graph_.node(id);
  if (options_.matrix_products == ProductKernels::kOff ||
      node.schema->full_name() != "aten::convolution")
    return false;
  OpCall call(*this, id);
  const TensorMeta& result = call.result();
  const bool of_halves = result.dtype == DType::kBFloat16 && options_.bfloat16_convolutions;
  if (result.device != "cpu" || (result.dtype != DType::kFloat32 && !of_halves) ||
      result.sizes.size() != 4 || call.boolean("transposed"))
    return false;
  const TensorValue input = call.tensor("input");
  const TensorValue weight = call.tensor("weight");
  if (input.dtype != result.dtype || weight.dtype != result.dtype || !is_sized(input) ||
      !is_sized(weight))
    return false;
  // Channels are neighbours, of a float32 weight the output's.
  if (!input.strided || !input.strided->strides[1].is_constant(1) || !weight.strided ||
      !weight.strided->strides[of_halves ? 1 : 0].is_constant(1) || !is_linear(program_, input) ||
      !is_linear(program_, weight))
    return false;
  const auto stride = of_image(call, "stride");
  const auto padding = of_image(call, "padding");
  const auto dilation = of_image(call, "dilation");
  if (!stride || !padding || !dilation) return false;
  const Geometry geometry{*stride, *padding, *dilation};
  const auto has_loops = [](std::initializer_list<Index> extents) {
    return std::all_of(extents.begin(), extents.end(),
                       [](Index e) { return e.is_constant() && e.constant() > 1; });
  };
  ConvolutionSizes convolution;
  convolution.is_depthwise = weight.sizes[1].is_constant(1) && weight.sizes[0] == input.sizes[1];
  convolution.channels = input.sizes[1].constant();
  convolution.outputs = weight.sizes[0].constant();
  convolution.factors =
      weight.sizes[1].constant() * weight.sizes[2].constant() * weight.sizes[3].constant();
  convolution.of_halves = of_halves;
  convolution.matrix_unit = of_halves && options_.bfloat16_tiles;
  const auto chosen = options_.kernel_choices.empty()
                          ? options_.kernel_choices.end()
                          : options_.kernel_choices.find(convolution_key(graph_, node));
  const bool is_kernel = chosen == options_.kernel_choices.end() || chosen->second;
  const bool forced =
      options_.matrix_products == ProductKernels::kOn || chosen != options_.kernel_choices.end();
  if (!is_kernel || !is_convolution_kernel(convolution, forced)) return false;
  std::optional<TensorValue> sum;
  if (convolution.is_depthwise && !of_halves &&
      has_loops(
          {result.sizes[1], result.sizes[2], result.sizes[3], weight.sizes[2], weight.sizes[3]})) {
    sum = sum_windows(call, input, weight, geometry);
  } else if (weight.sizes[1] == input.sizes[1] &&
             has_loops({input.sizes[1], result.sizes[1], result.sizes[3]})) {
    sum = sum_products(call, input, weight, geometry);
  }
  if (!sum) return false;
  const OperationId added(static_cast<uint32_t>(program_.operations().size() - 1));
  std::get<Reduction>(program_.operations()[added].v).is_product = true;
  const auto in_sum = [](std::span<const Index> p) {
    return std::vector<Index>{p[0], p[2], p[3], p[1]};
  };
  if (call.is_none("bias")) {
    set_rounded(call, 0, call.view(*sum, result.sizes, in_sum));
    return true;
  }
  const TensorValue bias = call.tensor("bias");
  set_pointwise(call, 0, [&](std::span<const Index> p) {
    return call.load(*sum, in_sum(p)) + load_wide(call, bias, p.subspan(1, 1));
  });
  return true;
}

bool LoweringContext::compute_packed_product(NodeId id) {
  OpCall call(*this, id);
  const TensorValue left = call.tensor("input");
  const TensorValue weight = call.tensor("weight");
  const std::vector<Index>& out = call.result().sizes;
  const auto is_sized = [](Index size) { return size.is_constant() && size.constant() > 0; };
  if (options_.matrix_products == ProductKernels::kOff || call.result().device != "cpu" ||
      !std::all_of(left.sizes.begin(), left.sizes.end(), is_sized) ||
      !std::all_of(out.begin(), out.end(), is_sized) || !has_neighbours(program_, left) ||
      !is_linear(program_, left))
    return false;
  const Index width = weight.sizes[2];
  const bool pairs = weight.rank() == 4;
  const std::array sizes = {left.sizes[1], out[1]};
  const TensorValue right = call.view(weight, sizes, [&](std::span<const Index> p) {
    const Index panel = floor_div(p[1], width);
    const Index column = mod(p[1], width);
    if (!pairs) return std::vector<Index>{panel, p[0], column};
    return std::vector<Index>{panel, floor_div(p[0], 2), column, mod(p[0], 2)};
  });
  set_product(call, left, right, true);
  return true;
}

bool LoweringContext::compute_product_on_cpu(NodeId id) {
  if (options_.matrix_products == ProductKernels::kOff) return false;
  OpCall call(*this, id);
  const DType dtype = call.result().dtype;
  if ((dtype != DType::kFloat32 && !is_half(dtype)) || call.node().schema->name == "aten::mv")
    return false;
  const auto [left, right] = factors_of(call);
  if (left.dtype != dtype || right.dtype != dtype) return false;
  const std::optional<Extents> extents = extents_of(left, right);
  if (!extents || extents->batches < 1 || extents->rows < 2 || extents->columns < 2 ||
      extents->factors < 2 || extents->factors > kMostFactors || !has_neighbours(program_, left) ||
      !has_neighbours(program_, right) || !is_linear(program_, left) || !is_linear(program_, right))
    return false;
  if (options_.matrix_products != ProductKernels::kOn) {
    if (!is_worth_a_kernel(*extents)) return false;
    const bool by_model = options_.matrix_products == ProductKernels::kAuto && pays(*extents) &&
                          (dtype != DType::kFloat16 || options_.float16_products) &&
                          (dtype != DType::kBFloat16 || options_.bfloat16_products);
    candidates_.push_back(describe_product(id, left, right));
    if (!choose(candidates_.back(), by_model)) return false;
  }
  set_product(call, left, right, true);
  return true;
}

}  // namespace litz
