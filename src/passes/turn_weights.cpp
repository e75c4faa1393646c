#include "passes/turn_weights.h"

#include <algorithm>

#include "passes/channels_last.h"
#include "passes/graph_rewriter.h"

namespace litz {
namespace {

constexpr int64_t kFewestChannels = 16;  // two or one vectors
constexpr int64_t kMostFactors = 8192;   // whole columns of them are packed on the stack
// On one thread of an AVX2 machine depthwise convolutions take half of oneDNN's time, those of
// images with so few channels 0.8 of it. Others take 0.9 to 1.2 times as long, with packed weights
// the more.
constexpr int64_t kFewChannels = 8;

bool is_float_on_cpu(const TensorMeta& tensor) {
  return tensor.dtype == DType::kFloat32 && tensor.device == "cpu" &&
         tensor.layout == TensorLayout::kStrided && tensor.sizes.size() == 4 &&
         std::all_of(tensor.sizes.begin(), tensor.sizes.end(),
                     [](Index size) { return size.is_constant() && size.constant() > 0; });
}

bool is_wanted(const Graph& graph, const Node& node, bool forced) {
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
  if (weight.sizes[1].is_constant(1) && weight.sizes[0] == channels) {
    // There are loops of rows, pixels and taps.
    return result.sizes[2].constant() >= 2 && weight.sizes[2].constant() >= 2 &&
           weight.sizes[3].constant() >= 2 && channels.constant() >= kFewestChannels;
  }
  if (weight.sizes[1] != channels || channels.constant() < 2 || weight.sizes[0].constant() < 2)
    return false;
  const int64_t outputs = weight.sizes[0].constant();
  if (product(graph.context(), weight.sizes).constant() / outputs > kMostFactors) return false;
  return forced || (channels.constant() < kFewChannels && outputs >= kFewestChannels);
}

TensorMeta permuted(const TensorMeta& tensor, const std::vector<size_t>& order) {
  TensorMeta meta = tensor;
  for (size_t i = 0; i < order.size(); ++i) {
    meta.sizes[i] = tensor.sizes[order[i]];
    meta.strides[i] = tensor.strides[order[i]];
  }
  return meta;
}

}  // namespace

bool is_turned_weight(const TensorMeta& weight) {
  return weight.sizes.size() == 4 && !weight.sizes[0].is_constant(1) &&
         weight.strides[0].is_constant(1);
}

Graph turn_weights(const Graph& graph, const PassOptions& options) {
  if (options.convolution_products == ConvolutionProducts::kOff) return graph;
  const bool forced = options.convolution_products == ConvolutionProducts::kOn;
  GraphRewriter rewriter(graph);
  for (uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const NodeId id(i);
    const Node& node = graph.node(id);
    if (!is_wanted(graph, node, forced)) {
      rewriter.copy(id);
      continue;
    }
    // [channels, 1, height, width] to [height, width, 1, channels] and back.
    const Value weight = argument(node, "weight").get<Value>();
    const ArgumentList order = {int64_t{2}, int64_t{3}, int64_t{1}, int64_t{0}};
    const ArgumentList back = {int64_t{3}, int64_t{2}, int64_t{0}, int64_t{1}};
    const TensorMeta turned = permuted(graph.tensor(weight), {2, 3, 1, 0});
    TensorMeta dense = turned;
    dense.strides = contiguous_strides(graph.context(), dense.sizes);
    dense.offset = graph.context().constant(0);
    const Value taps =
        rewriter.add_call(id, "aten::permute", {rewriter.map(weight), order}, {}, turned);
    const Value copy = rewriter.add_call(id, "aten::clone", {taps},
                                         {{"memory_format", MemoryFormatArg{0}}}, dense);
    std::vector<Argument> arguments = rewriter.map(node.arguments);
    arguments[static_cast<size_t>(node.schema->find("weight"))] =
        rewriter.add_call(id, "aten::permute", {copy, back}, {}, permuted(dense, {3, 2, 0, 1}));
    rewriter.copy_call(id, std::move(arguments));
  }
  return rewriter.finish();
}

}  // namespace litz
