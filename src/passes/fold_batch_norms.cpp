#include "passes/fold_batch_norms.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "graph/alias_analysis.h"
#include "passes/channels_last.h"
#include "passes/frozen_values.h"
#include "passes/graph_rewriter.h"

namespace litz {
namespace {

constexpr std::string_view kBatchNorm = "aten::_native_batch_norm_legit_no_training";

bool is_one(const Argument& number) {
  return number == Argument(int64_t{1}) || number == Argument(1.0);
}

bool is_number(const Argument& argument) {
  return argument.holds<int64_t>() || argument.holds<double>();
}

// A convolution, or a product of a matrix and a weight; what follows it is done to each channel.
struct Layer {
  NodeId id;
  Value input;
  Value weight;
  Argument bias;                  // a value or none
  size_t channel_dim = 0;         // of the weight; of one that is grouped and transposed see below
  int64_t transposed_groups = 1;  // channels are in this many groups along dimension 0, too
  int64_t channels = 0;
  std::vector<NodeId> steps;  // what is folded, in order
};

// What a channel's elements are multiplied with and what is added then: vectors in float64.
struct Affine {
  std::optional<Value> scale;
  std::optional<Value> shift;
};

class Folder {
 public:
  explicit Folder(const Graph& graph)
      : graph_(graph),
        aliases_(graph),
        frozen_(graph, aliases_),
        users_(graph),
        rewriter_(graph),
        layer_that_ends_at_(graph.num_nodes(), -1),
        is_left_out_(graph.num_nodes()) {
    for (uint32_t i = 0; i < graph.num_nodes(); ++i) {
      for (const Argument& argument : graph.node(NodeId(i)).arguments)
        for_each_value(argument, [&](Value value) { users_[value].emplace_back(i); });
    }
  }

  Graph run() {
    for (uint32_t i = 0; i < graph_.num_nodes(); ++i) find_layer(NodeId(i));
    for (uint32_t i = 0; i < graph_.num_nodes(); ++i) {
      if (layer_that_ends_at_[i] >= 0) {
        add_layer(layers_[static_cast<size_t>(layer_that_ends_at_[i])]);
      } else if (!is_left_out_[i]) {
        rewriter_.copy(NodeId(i));
      }
    }
    return rewriter_.finish();
  }

 private:
  // ---- what can be folded ----

  void find_layer(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.kind != NodeKind::kCall) return;
    std::optional<Layer> layer = convolution(id);
    if (!layer) layer = product(id);
    if (!layer || !frozen_.depends_on_input(layer->weight)) return;
    if (layer->bias.is_value() && !frozen_.is_frozen(layer->bias.get<Value>())) return;
    // Scaling is computed in a wider floating dtype.
    if (!is_floating(graph_.tensor(layer->weight).dtype)) return;
    if (!is_dense(graph_.tensor(layer->weight))) return;
    std::optional<NodeId> step = next_step({id, 0}, *layer);
    while (step) {
      layer->steps.push_back(*step);
      step = next_step({*step, 0}, *layer);
    }
    if (layer->steps.empty()) return;
    is_left_out_[id.value] = true;
    for (NodeId step : layer->steps) is_left_out_[step.value] = true;
    layer_that_ends_at_[layer->steps.back().value] = static_cast<int>(layers_.size());
    layers_.push_back(std::move(*layer));
  }

  std::optional<Layer> convolution(NodeId id) const {
    const Node& node = graph_.node(id);
    if (node.schema->full_name() != "aten::convolution") return std::nullopt;
    Layer layer;
    layer.id = id;
    layer.input = argument(node, "input").get<Value>();
    layer.weight = argument(node, "weight").get<Value>();
    layer.bias = argument(node, "bias");
    const TensorMeta& weight = graph_.tensor(layer.weight);
    const TensorMeta& result = graph_.tensor({id, 0});
    if (result.sizes.size() != weight.sizes.size() || !result.sizes[1].is_constant())
      return std::nullopt;
    layer.channels = result.sizes[1].constant();
    if (argument(node, "transposed") == Argument(true)) {
      if (!argument(node, "groups").holds<int64_t>()) return std::nullopt;
      layer.channel_dim = 1;
      layer.transposed_groups = argument(node, "groups").get<int64_t>();
    }
    return layer;
  }

  std::optional<Layer> product(NodeId id) const {
    const Node& node = graph_.node(id);
    const std::string op = node.schema->full_name();
    if (op != "aten::mm" && op != "aten::addmm") return std::nullopt;
    Layer layer;
    layer.id = id;
    layer.input = argument(node, op == "aten::mm" ? "self" : "mat1").get<Value>();
    layer.weight = argument(node, "mat2").get<Value>();
    layer.channel_dim = 1;
    const Index channels = graph_.tensor(layer.weight).sizes[1];
    if (!channels.is_constant()) return std::nullopt;
    layer.channels = channels.constant();
    if (op == "aten::addmm") {
      if (!is_one(argument(node, "beta")) || !is_one(argument(node, "alpha"))) return std::nullopt;
      layer.bias = argument(node, "self");
      if (!layer.bias.is_value()) return std::nullopt;
      const TensorMeta& bias = graph_.tensor(layer.bias.get<Value>());
      if (bias.sizes.size() != 1 || bias.sizes[0] != channels) return std::nullopt;
    }
    return layer;
  }

  // Elementwise results have the order in memory of such a tensor.
  static bool is_dense(const TensorMeta& tensor) {
    std::vector<std::pair<int64_t, int64_t>> dims;  // stride, size
    for (size_t d = 0; d < tensor.sizes.size(); ++d) {
      if (!tensor.sizes[d].is_constant() || !tensor.strides[d].is_constant()) return false;
      if (!tensor.sizes[d].is_constant(1))
        dims.emplace_back(tensor.strides[d].constant(), tensor.sizes[d].constant());
    }
    std::sort(dims.begin(), dims.end());
    int64_t expected = 1;
    for (const auto& [stride, size] : dims) {
      if (stride != expected) return false;
      expected *= size;
    }
    return tensor.layout == TensorLayout::kStrided && expected > 0;
  }

  // The call that alone reads the value and does to each channel what is frozen.
  std::optional<NodeId> next_step(Value value, const Layer& layer) const {
    if (users_[value].size() != 1 || aliases_.is_visible(value) || aliases_.is_written(value))
      return std::nullopt;
    const NodeId user = users_[value].front();
    const Node& node = graph_.node(user);
    if (!is_step(node, value, layer) || graph_.meta({user, 0}) != graph_.meta(value))
      return std::nullopt;
    // The new layer reads its input where the last step is.
    if (aliases_.is_written_between(layer.input, layer.id, user)) return std::nullopt;
    // The statistics that a batch norm gives as well.
    for (uint32_t k = 1; k < node.outputs.size(); ++k) {
      if (!users_[{user, k}].empty() || aliases_.is_visible({user, k})) return std::nullopt;
    }
    return user;
  }

  bool is_step(const Node& node, Value value, const Layer& layer) const {
    const std::string op = node.schema->full_name();
    if (op == kBatchNorm) {
      if (argument(node, "input") != Argument(value)) return false;
      for (const char* name : {"weight", "bias", "running_mean", "running_var"}) {
        const Argument& vector = argument(node, name);
        const bool may_miss =
            std::string_view(name) == "weight" || name == std::string_view("bias");
        if (!(may_miss && vector.is_none()) && !is_of_channels(vector, 1, layer)) return false;
      }
      return true;
    }
    const bool commutes = op == "aten::add.Tensor" || op == "aten::mul.Tensor";
    if (!commutes && op != "aten::sub.Tensor" && op != "aten::div.Tensor") return false;
    if (node.schema->find("alpha") >= 0 && !is_one(argument(node, "alpha"))) return false;
    const bool is_first = argument(node, "self") == Argument(value);
    if (!is_first && !commutes) return false;
    const Argument& other = argument(node, is_first ? "other" : "self");
    return is_number(other) || is_of_channels(other, graph_.tensor(value).sizes.size() - 1, layer);
  }

  // A frozen value with an element for each channel, or one for all; `from_right` is the place of
  // the channels' dimension, counted from 1 at the last one.
  bool is_of_channels(const Argument& argument, size_t from_right, const Layer& layer) const {
    if (!argument.is_value()) return false;
    const Value value = argument.get<Value>();
    if (!frozen_.is_frozen(value) || !graph_.meta(value).is_tensor()) return false;
    const TensorMeta& meta = graph_.tensor(value);
    if (!is_floating(meta.dtype)) return false;
    for (size_t d = 0; d < meta.sizes.size(); ++d) {
      const bool may_vary = meta.sizes.size() - d == from_right;
      if (!meta.sizes[d].is_constant(1) && !(may_vary && meta.sizes[d].is_constant(layer.channels)))
        return false;
    }
    return true;
  }

  // ---- the new layer ----

  void add_layer(const Layer& layer) {
    at_ = layer.id;
    channels_ = layer.channels;
    device_ = graph_.tensor(layer.weight).device;
    Affine affine;
    for (size_t i = 0; i < layer.steps.size(); ++i)
      follow(affine, layer.steps[i], i == 0 ? Value{layer.id, 0} : Value{layer.steps[i - 1], 0});
    const Value weight =
        affine.scale ? scaled_weight(layer, *affine.scale) : rewriter_.map(layer.weight);
    const Argument bias = new_bias(layer, affine);
    const Value result = call(layer, weight, bias);
    rewriter_.replace({layer.steps.back(), 0}, result);
  }

  Value call(const Layer& layer, Value weight, const Argument& bias) {
    const Node& node = graph_.node(layer.id);
    const TensorMeta& meta = node.outputs[0].tensor;
    if (node.schema->name == "aten::convolution") {
      std::vector<Argument> arguments = rewriter_.map(node.arguments);
      arguments[static_cast<size_t>(node.schema->find("weight"))] = weight;
      arguments[static_cast<size_t>(node.schema->find("bias"))] = bias;
      return {rewriter_.copy_call(layer.id, std::move(arguments)), 0};
    }
    const Value left = rewriter_.map(layer.input);
    if (bias.is_none()) return add("aten::mm", {left, weight}, {}, meta);
    return add("aten::addmm", {bias, left, weight}, {}, meta);
  }

  void follow(Affine& affine, NodeId step, Value operand) {
    const Node& node = graph_.node(step);
    const std::string op = node.schema->full_name();
    if (op == kBatchNorm) {
      const Value variance = vector(argument(node, "running_var"));
      const Value mean = vector(argument(node, "running_mean"));
      Value scale =
          compute("aten::rsqrt", {compute("aten::add.Tensor", {variance, argument(node, "eps")})});
      if (argument(node, "weight").is_value())
        scale = compute("aten::mul.Tensor", {scale, vector(argument(node, "weight"))});
      add_to(affine, compute("aten::neg", {mean}));
      multiply(affine, scale);
      if (argument(node, "bias").is_value()) add_to(affine, vector(argument(node, "bias")));
      return;
    }
    const bool is_first = argument(node, "self") == Argument(operand);
    const Value other = vector(argument(node, is_first ? "other" : "self"));
    if (op == "aten::mul.Tensor") multiply(affine, other);
    if (op == "aten::div.Tensor") multiply(affine, compute("aten::reciprocal", {other}));
    if (op == "aten::add.Tensor") add_to(affine, other);
    if (op == "aten::sub.Tensor") add_to(affine, compute("aten::neg", {other}));
  }

  void multiply(Affine& affine, Value factor) {
    affine.scale = affine.scale ? compute("aten::mul.Tensor", {*affine.scale, factor}) : factor;
    if (affine.shift) affine.shift = compute("aten::mul.Tensor", {*affine.shift, factor});
  }

  void add_to(Affine& affine, Value term) {
    affine.shift = affine.shift ? compute("aten::add.Tensor", {*affine.shift, term}) : term;
  }

  Argument new_bias(const Layer& layer, const Affine& affine) {
    std::optional<Value> bias = affine.shift;
    if (layer.bias.is_value()) {
      Value own = vector(layer.bias);
      if (affine.scale) own = compute("aten::mul.Tensor", {own, *affine.scale});
      bias = bias ? compute("aten::add.Tensor", {own, *bias}) : own;
    }
    if (!bias) return {};
    return cast(*bias, graph_.tensor(layer.weight).dtype);
  }

  Value scaled_weight(const Layer& layer, Value scale) {
    const TensorMeta& meta = graph_.tensor(layer.weight);
    // Enough digits that rounding once at the end is all that counts, in no more than twice the
    // memory.
    const DType wide = size_of(meta.dtype) <= 2 ? DType::kFloat32 : DType::kFloat64;
    scale = cast(scale, wide);
    std::vector<int64_t> sizes(meta.sizes.size(), 1);
    sizes[layer.channel_dim] = channels_;
    if (layer.transposed_groups > 1) {
      // Dimension 0 goes through the groups, each of which has channels of its own.
      const int64_t groups = layer.transposed_groups;
      const int64_t rows = meta.sizes[0].constant() / groups;
      sizes[0] = groups * rows;
      sizes[1] = channels_ / groups;
      scale = reshaped(scale, {groups, 1, sizes[1]});
      scale = add("aten::expand", {scale, list({groups, rows, sizes[1]})}, {},
                  meta_of(wide, {groups, rows, sizes[1]}));
      scale = add("aten::clone", {scale}, {{"memory_format", MemoryFormatArg{0}}},
                  meta_of(wide, {groups, rows, sizes[1]}));
    }
    scale = reshaped(scale, sizes);
    TensorMeta laid_out = meta;
    laid_out.offset = graph_.context().constant(0);
    laid_out.dtype = wide;
    Value weight = rewriter_.map(layer.weight);
    if (meta.dtype != wide) weight = add("aten::_to_copy", {weight}, {{"dtype", wide}}, laid_out);
    weight = add("aten::mul.Tensor", {weight, scale}, {}, laid_out);
    laid_out.dtype = meta.dtype;
    return meta.dtype == wide ? weight
                              : add("aten::_to_copy", {weight}, {{"dtype", meta.dtype}}, laid_out);
  }

  // A number, or a value of one element or one for each channel, as a vector of all channels.
  Value vector(const Argument& argument) {
    const TensorMeta full = meta_of(DType::kFloat64, {channels_});
    if (is_number(argument)) {
      return add("aten::full", {list({channels_}), argument},
                 {{"dtype", DType::kFloat64}, {"device", DeviceArg{device_}}}, full);
    }
    const Value value = argument.get<Value>();
    const TensorMeta& meta = graph_.tensor(value);
    int64_t elements = 1;
    for (Index size : meta.sizes) elements *= size.constant();
    Value result = rewriter_.map(value);
    if (!is_row_major(graph_.context(), meta)) {
      TensorMeta straight = meta;
      straight.strides = contiguous_strides(graph_.context(), meta.sizes);
      straight.offset = graph_.context().constant(0);
      result = add("aten::clone", {result}, {{"memory_format", MemoryFormatArg{0}}}, straight);
    }
    if (meta.sizes.size() != 1) result = reshaped(result, {elements});
    result = cast(result, DType::kFloat64);
    if (elements == channels_) return result;
    result =
        add("aten::expand", {result, list({channels_})}, {}, meta_of(DType::kFloat64, {channels_}));
    return add("aten::clone", {result}, {{"memory_format", MemoryFormatArg{0}}}, full);
  }

  Value compute(std::string_view op, std::vector<Argument> arguments) {
    return add(op, std::move(arguments), {}, meta_of(DType::kFloat64, {channels_}));
  }

  Value cast(Value value, DType dtype) {
    const TensorMeta& meta = rewriter_.result().tensor(value);
    if (meta.dtype == dtype) return value;
    TensorMeta copy = meta;
    copy.dtype = dtype;
    copy.offset = graph_.context().constant(0);
    return add("aten::_to_copy", {value}, {{"dtype", dtype}}, copy);
  }

  Value reshaped(Value value, const std::vector<int64_t>& sizes) {
    return add("aten::view", {value, list(sizes)}, {},
               meta_of(rewriter_.result().tensor(value).dtype, sizes));
  }

  TensorMeta meta_of(DType dtype, const std::vector<int64_t>& sizes) const {
    TensorMeta meta;
    meta.dtype = dtype;
    for (int64_t size : sizes) meta.sizes.push_back(graph_.context().constant(size));
    meta.strides = contiguous_strides(graph_.context(), meta.sizes);
    meta.offset = graph_.context().constant(0);
    meta.device = device_;
    return meta;
  }

  static ArgumentList list(const std::vector<int64_t>& numbers) {
    ArgumentList result;
    for (int64_t number : numbers) result.emplace_back(number);
    return result;
  }

  Value add(std::string_view op, std::vector<Argument> positional,
            std::vector<std::pair<std::string, Argument>> keywords, const TensorMeta& meta) {
    return rewriter_.add_call(at_, op, std::move(positional), std::move(keywords), meta);
  }

  const Graph& graph_;
  const AliasAnalysis aliases_;
  const FrozenValues frozen_;
  ValueMap<std::vector<NodeId>> users_;
  GraphRewriter rewriter_;
  std::vector<Layer> layers_;
  std::vector<int> layer_that_ends_at_;  // by node: position in layers_, or -1
  std::vector<char> is_left_out_;        // by node
  // Of the layer at hand.
  NodeId at_;
  int64_t channels_ = 0;
  std::string device_;
};

}  // namespace

Graph fold_batch_norms(const Graph& graph) {
  return has_frozen_inputs(graph) ? Folder(graph).run() : graph;
}

}  // namespace litz
