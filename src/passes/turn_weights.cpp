#include "passes/turn_weights.h"

#include <algorithm>
#include <map>

#include "graph/convolution_kernels.h"
#include "graph/op_traits.h"
#include "passes/channels_last.h"
#include "passes/graph_rewriter.h"

namespace litz {
namespace {

bool is_float_on_cpu(const TensorMeta& tensor) {
  return tensor.dtype == DType::kFloat32 && tensor.device == "cpu" &&
         tensor.layout == TensorLayout::kStrided && tensor.sizes.size() == 4 &&
         std::all_of(tensor.sizes.begin(), tensor.sizes.end(),
                     [](Index size) { return size.is_constant() && size.constant() > 0; });
}

ConvolutionSizes sizes_of(const Graph& graph, const TensorMeta& input, const TensorMeta& weight) {
  ConvolutionSizes sizes;
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

TensorMeta permuted(const TensorMeta& tensor, const std::vector<size_t>& order) {
  TensorMeta meta = tensor;
  for (size_t i = 0; i < order.size(); ++i) {
    meta.sizes[i] = tensor.sizes[order[i]];
    meta.strides[i] = tensor.strides[order[i]];
  }
  return meta;
}

// [channels, 1, height, width] to [height, width, 1, channels] and back.
Value turn(GraphRewriter& rewriter, const Graph& graph, NodeId at, Value weight) {
  const ArgumentList order = {int64_t{2}, int64_t{3}, int64_t{1}, int64_t{0}};
  const ArgumentList back = {int64_t{3}, int64_t{2}, int64_t{0}, int64_t{1}};
  const TensorMeta turned = permuted(graph.tensor(weight), {2, 3, 1, 0});
  TensorMeta dense = turned;
  dense.strides = contiguous_strides(graph.context(), dense.sizes);
  dense.offset = graph.context().constant(0);
  const Value taps =
      rewriter.add_call(at, "aten::permute", {rewriter.map(weight), order}, {}, turned);
  const Value copy =
      rewriter.add_call(at, "aten::clone", {taps}, {{"memory_format", MemoryFormatArg{0}}}, dense);
  return rewriter.add_call(at, "aten::permute", {copy, back}, {}, permuted(dense, {3, 2, 0, 1}));
}

}  // namespace

bool can_turn_weight(const Graph& graph, const Node& node) {
  if (node.kind != NodeKind::kCall || node.schema->full_name() != "aten::convolution" ||
      argument(node, "transposed") == Argument(true))
    return false;
  const TensorMeta& input = graph.tensor(argument(node, "input").get<Value>());
  const TensorMeta& weight = graph.tensor(argument(node, "weight").get<Value>());
  const TensorMeta& result = node.outputs[0].tensor;
  if (!is_float_on_cpu(input) || !is_float_on_cpu(weight) || !is_float_on_cpu(result) ||
      !is_channels_last(graph.context(), input) || is_row_major(graph.context(), input) ||
      !is_channels_last(graph.context(), result) ||
      !(is_row_major(graph.context(), weight) || is_channels_last(graph.context(), weight)))
    return false;
  const Index channels = input.sizes[1];
  if (result.sizes[3].constant() < 2) return false;
  // There are loops of rows, pixels and taps.
  const ConvolutionSizes sizes = sizes_of(graph, input, weight);
  if (sizes.is_depthwise && (result.sizes[2].constant() < 2 || weight.sizes[2].constant() < 2 ||
                             weight.sizes[3].constant() < 2))
    return false;
  return (sizes.is_depthwise || weight.sizes[1] == channels) && is_convolution_kernel(sizes, true);
}

bool turns_weight(const Graph& graph, const Node& node, const PassOptions& options) {
  if (options.is_library_call(node) || !can_turn_weight(graph, node)) return false;
  const TensorMeta& input = graph.tensor(argument(node, "input").get<Value>());
  const TensorMeta& weight = graph.tensor(argument(node, "weight").get<Value>());
  return is_kernel(graph, node, sizes_of(graph, input, weight), options);
}

bool has_turned_weight(const Graph& graph, const Node& convolution, const PassOptions& options) {
  if (options.convolution_products == ConvolutionProducts::kOff) return false;
  const TensorMeta& input = graph.tensor(argument(convolution, "input").get<Value>());
  const TensorMeta& weight = graph.tensor(argument(convolution, "weight").get<Value>());
  return is_float_on_cpu(input) && is_float_on_cpu(weight) && !weight.sizes[0].is_constant(1) &&
         weight.strides[0].is_constant(1) && is_channels_last(graph.context(), input) &&
         is_kernel(graph, convolution, sizes_of(graph, input, weight), options);
}

Graph turn_weights(const Graph& graph, const PassOptions& options) {
  if (options.convolution_products == ConvolutionProducts::kOff) return graph;
  GraphRewriter rewriter(graph);
  const bool shares = !has_mutations(graph);
  std::map<Value, Value> turned_weights;
  for (uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const NodeId id(i);
    const Node& node = graph.node(id);
    if (!turns_weight(graph, node, options)) {
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
