#include "passes/turn_weights.h"

#include <algorithm>
#include <array>
#include <map>

#include "graph/convolution_kernels.h"
#include "graph/op_traits.h"
#include "passes/channels_last.h"
#include "passes/graph_rewriter.h"

namespace litz {
namespace {

bool is_image_on_cpu(const TensorMeta& tensor, DType dtype) {
  return tensor.dtype == dtype && tensor.device == "cpu" &&
         tensor.layout == TensorLayout::kStrided && tensor.sizes.size() == 4 &&
         std::all_of(tensor.sizes.begin(), tensor.sizes.end(),
                     [](Index size) { return size.is_constant() && size.constant() > 0; });
}

ConvolutionSizes sizes_of(const Graph& graph, const TensorMeta& input, const TensorMeta& weight,
                          const PassOptions& options) {
  ConvolutionSizes sizes;
  sizes.of_halves = is_half(input.dtype);
  sizes.matrix_unit = sizes.of_halves && options.multiplies_tiles;
  sizes.is_depthwise = weight.sizes[1].is_constant(1) && weight.sizes[0] == input.sizes[1];
  sizes.channels = input.sizes[1].constant();
  sizes.outputs = weight.sizes[0].constant();
  sizes.factors = product(graph.context(), weight.sizes).constant() / sizes.outputs;
  return sizes;
}

bool is_kernel(const Graph& graph, const Node& convolution, const ConvolutionSizes& sizes,
               const PassOptions& options) {
  const ConvolutionProducts wanted = options.convolution_products;
  if (wanted == ConvolutionProducts::kOff) return false;
  const bool by_model = is_convolution_kernel(sizes, wanted == ConvolutionProducts::kOn);
  return options.choice(graph, convolution).value_or(by_model) &&
         is_convolution_kernel(sizes, true);
}

TensorMeta permuted(const TensorMeta& tensor, const std::array<size_t, 4>& order) {
  TensorMeta meta = tensor;
  for (size_t i = 0; i < order.size(); ++i) {
    meta.sizes[i] = tensor.sizes[order[i]];
    meta.strides[i] = tensor.strides[order[i]];
  }
  return meta;
}

// How a kernel wants a weight [outputs, channels, height, width]: the outputs behind, or of half
// floats, whose pairs are two channels, the channels.
using Order = std::array<size_t, 4>;
Order order_for(DType dtype) { return is_half(dtype) ? Order{0, 2, 3, 1} : Order{2, 3, 1, 0}; }

ArgumentList list(const Order& order) {
  ArgumentList entries;
  for (size_t i : order) entries.emplace_back(static_cast<int64_t>(i));
  return entries;
}

// A copy in that order, with the dimensions of before.
Value turn(GraphRewriter& rewriter, const Graph& graph, NodeId at, Value weight) {
  const Order order = order_for(graph.tensor(weight).dtype);
  Order back;
  for (size_t i = 0; i < order.size(); ++i) back[order[i]] = i;
  const TensorMeta turned = permuted(graph.tensor(weight), order);
  TensorMeta dense = turned;
  dense.strides = contiguous_strides(graph.context(), dense.sizes);
  dense.offset = graph.context().constant(0);
  const Value taps =
      rewriter.add_call(at, "aten::permute", {rewriter.map(weight), list(order)}, {}, turned);
  const Value copy =
      rewriter.add_call(at, "aten::clone", {taps}, {{"memory_format", MemoryFormatArg{0}}}, dense);
  return rewriter.add_call(at, "aten::permute", {copy, list(back)}, {}, permuted(dense, back));
}

}  // namespace

bool can_turn_weight(const Graph& graph, const Node& node, const PassOptions& options) {
  if (node.kind != NodeKind::kCall || node.schema->full_name() != "aten::convolution" ||
      argument(node, "transposed") == Argument(true))
    return false;
  const TensorMeta& input = graph.tensor(argument(node, "input").get<Value>());
  const TensorMeta& weight = graph.tensor(argument(node, "weight").get<Value>());
  const TensorMeta& result = node.outputs[0].tensor;
  const DType dtype = result.dtype;
  if (!options.convolves(dtype) || !is_image_on_cpu(input, dtype) ||
      !is_image_on_cpu(weight, dtype) || !is_image_on_cpu(result, dtype) ||
      !is_channels_last(graph.context(), input) || is_row_major(graph.context(), input) ||
      !is_channels_last(graph.context(), result) ||
      !(is_row_major(graph.context(), weight) || is_channels_last(graph.context(), weight)))
    return false;
  const Index channels = input.sizes[1];
  if (result.sizes[3].constant() < 2) return false;
  // There are loops of rows, pixels and taps.
  const ConvolutionSizes sizes = sizes_of(graph, input, weight, options);
  if (sizes.is_depthwise && (dtype != DType::kFloat32 || result.sizes[2].constant() < 2 ||
                             weight.sizes[2].constant() < 2 || weight.sizes[3].constant() < 2))
    return false;
  return (sizes.is_depthwise || weight.sizes[1] == channels) && is_convolution_kernel(sizes, true);
}

bool wants_turned_weight(const Graph& graph, const Node& node, const PassOptions& options) {
  if (options.is_library_call(node) || !can_turn_weight(graph, node, options)) return false;
  const TensorMeta& input = graph.tensor(argument(node, "input").get<Value>());
  const TensorMeta& weight = graph.tensor(argument(node, "weight").get<Value>());
  return is_kernel(graph, node, sizes_of(graph, input, weight, options), options);
}

bool has_turned_weight(const Graph& graph, const Node& convolution, const PassOptions& options) {
  if (options.convolution_products == ConvolutionProducts::kOff) return false;
  const TensorMeta& input = graph.tensor(argument(convolution, "input").get<Value>());
  const TensorMeta& weight = graph.tensor(argument(convolution, "weight").get<Value>());
  return options.convolves(input.dtype) && is_image_on_cpu(input, input.dtype) &&
         is_image_on_cpu(weight, input.dtype) && !weight.sizes[0].is_constant(1) &&
         (is_half(weight.dtype) ? is_channels_last(graph.context(), weight)
                                : weight.strides[0].is_constant(1)) &&
         is_channels_last(graph.context(), input) &&
         is_kernel(graph, convolution, sizes_of(graph, input, weight, options), options);
}

Graph turn_weights(const Graph& graph, const PassOptions& options) {
  if (options.convolution_products == ConvolutionProducts::kOff) return graph;
  GraphRewriter rewriter(graph);
  const bool shares = !has_mutations(graph);
  std::map<Value, Value> turned_weights;
  for (uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const NodeId id(i);
    const Node& node = graph.node(id);
    if (!wants_turned_weight(graph, node, options) || has_turned_weight(graph, node, options)) {
      rewriter.copy(id);
      continue;
    }
    const Value weight = argument(node, "weight").get<Value>();
    const auto [turned, is_new] = turned_weights.try_emplace(weight);
    if (is_new || !shares) turned->second = turn(rewriter, graph, id, weight);
    std::vector<Argument> arguments = rewriter.map(node.arguments);
    arguments[static_cast<size_t>(node.schema->find("weight"))] = turned->second;
    rewriter.copy_call(id, std::move(arguments));
  }
  return rewriter.finish();
}

}  // namespace litz
