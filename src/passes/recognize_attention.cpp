#include "passes/recognize_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "graph/alias_analysis.h"
#include "passes/graph_rewriter.h"

namespace litz {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kVector = 8;        // half floats of 16 bytes, which the library wants
constexpr int64_t kLeastLength = 16;  // of keys and queries of half floats
constexpr int64_t kLeastLongLength =
    256;  // of float32, which the library on CPUs multiplies as fast in two products
constexpr int64_t kMostWidth = 256;

constexpr std::string_view kCpuOp = "aten::_scaled_dot_product_flash_attention_for_cpu";
constexpr std::string_view kCudaOp = "aten::_scaled_dot_product_flash_attention";
constexpr std::string_view kCudaMaskedOp = "aten::_scaled_dot_product_efficient_attention";

std::optional<double> number(const Argument& argument) {
  if (const auto* real = std::get_if<double>(&argument.v)) return *real;
  if (const auto* integer = std::get_if<int64_t>(&argument.v)) return static_cast<double>(*integer);
  return std::nullopt;
}

// Attention as a graph spells it out.
struct SpeltOut {
  Value query;  // the operands of the two batched products, of three dimensions
  Value key;    // turned: [batch, width, keys]
  Value value;
  double scale = 1;
  Value bias;            // added to the scores, of any shape that broadcasts; invalid: none
  Value condition;       // where it holds scores are -inf; invalid: none
  Value masked;          // the scores that either is for, whose sizes it broadcasts to
  NodeId product;        // of queries and keys
  bool is_safe = false;  // positions that are masked as a whole are zeros
};

// Four-dimensional operands.
struct Operands {
  Value query;
  Value key;
  Value value;
};

class Recognizer {
 public:
  Recognizer(const Graph& graph, const PassOptions& options)
      : graph_(graph), options_(options), aliases_(graph), rewriter_(graph), uses_(graph, 0) {
    for (uint32_t i = 0; i < graph.num_nodes(); ++i) {
      const Node& node = graph.node(NodeId(i));
      for (const Argument& argument : node.arguments)
        for_each_value(argument, [&](Value value) { ++uses_[value]; });
    }
    for (const Argument& output : graph.outputs())
      for_each_value(output, [&](Value value) { ++uses_[value]; });
  }

  Graph run() {
    for (uint32_t i = 0; i < graph_.num_nodes(); ++i) {
      const NodeId id(i);
      rewriter_.copy(id);
      const std::optional<SpeltOut> found = find(id);
      if (found && is_faster(*found, id)) replace(*found, id);
    }
    return rewriter_.finish();
  }

 private:
  const Node* call(Value value) const {
    const Node& node = graph_.node(value.node);
    return node.kind == NodeKind::kCall && value.output == 0 ? &node : nullptr;
  }
  bool is_call(Value value, std::string_view op) const {
    const Node* node = call(value);
    return node != nullptr && node->schema->full_name() == op;
  }
  const TensorMeta& tensor(Value value) const { return graph_.tensor(value); }

  static Value operand(const Node& node, size_t i = 0) {
    return node.arguments[i].is_value() ? node.arguments[i].get<Value>() : Value();
  }

  bool is_view(Value value) const {
    return is_call(value, "aten::view") || is_call(value, "aten::_unsafe_view") ||
           is_call(value, "aten::reshape");
  }
  bool is_same_shape(Value a, Value b) const { return tensor(a).sizes == tensor(b).sizes; }

  // Steps that leave elements and their order as they are.
  bool is_in_order(Value value) const {
    if (is_view(value) || is_call(value, "aten::clone")) return true;
    return is_call(value, "aten::expand") && is_same_shape(value, operand(*call(value)));
  }

  // Through such steps, and conversions between a half and float32, that nobody else reads.
  Value source(Value value, bool converts) const {
    while (uses_[value] == 1) {
      const bool converted = converts && is_call(value, "aten::_to_copy") &&
                             is_floating(tensor(operand(*call(value))).dtype) &&
                             is_floating(tensor(value).dtype) &&
                             tensor(value).device == tensor(operand(*call(value))).device;
      if (!is_in_order(value) && !converted) break;
      value = operand(*call(value));
    }
    return value;
  }

  std::optional<SpeltOut> find(NodeId id) const {
    const Value result{id, 0};
    if (!is_call(result, "aten::bmm")) return std::nullopt;
    SpeltOut found;
    found.value = operand(graph_.node(id), 1);
    const Value weights = source(operand(graph_.node(id)), true);
    if (uses_[weights] != 1) return std::nullopt;
    found.is_safe = is_call(weights, "aten::_safe_softmax");
    if (!found.is_safe && !is_call(weights, "aten::_softmax")) return std::nullopt;
    const Node& softmax = *call(weights);
    const auto rank = static_cast<int64_t>(tensor(weights).sizes.size());
    const std::optional<double> dim = number(softmax.arguments[1]);
    if (!dim || (*dim != -1 && *dim != static_cast<double>(rank - 1))) return std::nullopt;
    const Index keys = tensor(weights).sizes.back();
    if (keys != tensor(found.value).sizes[1]) return std::nullopt;
    const Value product = find_product(operand(softmax), found);
    if (!product.valid()) return std::nullopt;
    found.query = operand(*call(product));
    found.key = operand(*call(product), 1);
    found.product = product.node;
    if (tensor(product).sizes.back() != keys || !has_rows_of(found, tensor(result)))
      return std::nullopt;
    return is_read_later(found, id) ? std::optional(found) : std::nullopt;
  }

  // The steps in between keep the order of the elements, but may group them into other rows and
  // another batch.
  bool has_rows_of(const SpeltOut& found, const TensorMeta& result) const {
    const Index batch = result.sizes[0];
    return tensor(found.query).sizes[1] == result.sizes[1] &&
           tensor(found.query).sizes[0] == batch && tensor(found.key).sizes[0] == batch &&
           tensor(found.value).sizes[0] == batch;
  }

  // The new call reads all operands where the second product is.
  bool is_read_later(const SpeltOut& found, NodeId id) const {
    return !aliases_.is_written_between(found.query, found.product, id) &&
           !aliases_.is_written_between(found.key, found.product, id);
  }

  // From the scores down to the product of queries and keys; what masks and scales it.
  Value find_product(Value scores, SpeltOut& found) const {
    while (true) {
      scores = source(scores, true);
      if (uses_[scores] != 1 || call(scores) == nullptr) return {};
      const Node& node = *call(scores);
      const std::string op = node.schema->full_name();
      if (op == "aten::bmm") return scores;
      if (op == "aten::mul.Tensor" || op == "aten::div.Tensor" || op == "aten::mul.Scalar" ||
          op == "aten::div.Scalar") {
        const std::optional<double> factor = number(node.arguments[1]);
        if (!factor || !std::isfinite(*factor) || *factor == 0) return {};
        found.scale = op.starts_with("aten::mul") ? found.scale * *factor : found.scale / *factor;
      } else if (found.bias.valid() || found.condition.valid() || found.scale != 1) {
        return {};
      } else if (op == "aten::add.Tensor") {
        if (number(node.arguments[2]) != 1.0 || !operand(node, 1).valid()) return {};
        found.bias = operand(node, 1);
        found.masked = scores;
        if (!is_same_shape(scores, operand(node))) return {};
      } else if (op == "aten::masked_fill.Scalar") {
        if (number(node.arguments[2]) != -kInfinity) return {};
        found.condition = operand(node, 1);
        found.masked = scores;
        if (!is_same_shape(scores, operand(node))) return {};
      } else {
        return {};
      }
      scores = operand(node);
    }
  }

  bool is_faster(const SpeltOut& found, NodeId id) const {
    const TensorMeta& query = tensor(found.query);
    const TensorMeta& key = tensor(found.key);
    const TensorMeta& result = tensor({id, 0});
    const DType dtype = result.dtype;
    const bool on_cuda = result.device.starts_with("cuda");
    if (!is_half(dtype) && (dtype != DType::kFloat32 || on_cuda)) return false;
    for (const TensorMeta* meta : {&query, &key, &tensor(found.value)}) {
      if (meta->dtype != dtype) return false;
    }
    for (Index size : {query.sizes[1], query.sizes[2], key.sizes[2], result.sizes[2]}) {
      if (!size.is_constant()) return false;
    }
    if (found.masked.valid() && !has_score_sizes(tensor(found.masked).sizes, found)) return false;
    const bool is_kernel = !on_cuda && options_.attention_kernels_of(dtype);
    const int64_t least = is_kernel ? 2 : is_half(dtype) ? kLeastLength : kLeastLongLength;
    const int64_t width = query.sizes[2].constant();
    if (query.sizes[1].constant() < (is_kernel ? 1 : least) || key.sizes[2].constant() < least ||
        width > kMostWidth || (is_kernel && width < 2))
      return false;
    if (found.is_safe && on_cuda) return false;
    if (found.bias.valid() && !is_mask(found.bias, dtype)) return false;
    if (found.condition.valid() && !is_mask(found.condition, DType::kBool)) return false;
    if (query.sizes[2] != result.sizes[2]) return false;
    if (!on_cuda) return true;
    const int64_t keys = key.sizes[2].constant();
    if (found.bias.valid() &&
        (!is_aligned(tensor(found.bias), tensor(found.bias).sizes.size() - 1) ||
         !tensor(found.bias).sizes.back().is_constant(keys)))
      return false;
    if (found.condition.valid() && !tensor(found.condition).sizes.back().is_constant(keys))
      return false;
    const bool is_masked = found.bias.valid() || found.condition.valid();
    return width % kVector == 0 && (!is_masked || keys % kVector == 0);
  }

  // Of three dimensions, or of four with the batch as two; rows and columns as in the product.
  bool has_score_sizes(const std::vector<Index>& sizes, const SpeltOut& found) const {
    const size_t rank = sizes.size();
    return (rank == 3 || rank == 4) && sizes[rank - 2] == tensor(found.query).sizes[1] &&
           sizes[rank - 1] == tensor(found.key).sizes[2];
  }

  bool is_mask(Value mask, DType dtype) const {
    const TensorMeta& meta = tensor(mask);
    return meta.dtype == dtype && !meta.sizes.empty() && meta.sizes.size() <= 4 &&
           !aliases_.is_written(mask);
  }

  // As the library's ops want it.
  static bool can_be_read(const TensorMeta& meta, size_t dim) {
    return meta.device.starts_with("cuda") ? is_aligned(meta, dim)
                                           : meta.strides[dim].is_constant(1);
  }

  // Neighbours along `dim` are neighbours in memory, and rows of them begin at multiples of 16
  // bytes.
  static bool is_aligned(const TensorMeta& meta, size_t dim) {
    const auto is_whole = [](Index elements) {
      return elements.is_constant() && elements.constant() % kVector == 0;
    };
    bool aligned = is_whole(meta.offset) && meta.strides[dim].is_constant(1);
    for (size_t i = 0; i < meta.sizes.size(); ++i)
      aligned = aligned && (i == dim || meta.sizes[i].is_constant(1) || is_whole(meta.strides[i]));
    return aligned;
  }

  // ---- operands ----

  // The tensor of four dimensions that the operand was made of by looking at two as one.
  std::optional<Value> before_view(Value value, bool turned) const {
    Value at = value;
    while (is_in_order(at) && tensor(at).sizes.size() != 4) {
      if (aliases_.is_written(at)) return std::nullopt;
      at = operand(*call(at));
    }
    while (is_call(at, "aten::clone") ||
           (is_call(at, "aten::expand") && is_same_shape(at, operand(*call(at))))) {
      if (aliases_.is_written(at)) return std::nullopt;
      at = operand(*call(at));
    }
    const TensorMeta& meta = tensor(at);
    const TensorMeta& viewed = tensor(value);
    if (meta.sizes.size() != 4 || meta.sizes[2] != viewed.sizes[1] ||
        meta.sizes[3] != viewed.sizes[2] || aliases_.is_written(at))
      return std::nullopt;
    return can_be_read(meta, turned ? 2 : 3) ? std::optional(at) : std::nullopt;
  }

  // The batch as it was before the products looked at it as one dimension.
  std::pair<Index, Index> batch_of(const SpeltOut& found) const {
    const std::pair<Index, Index> as_one = {graph_.context().constant(1),
                                            tensor(found.query).sizes[0]};
    if (found.masked.valid()) {
      const std::vector<Index>& sizes = tensor(found.masked).sizes;
      return sizes.size() == 4 ? std::pair(sizes[0], sizes[1]) : as_one;
    }
    for (Value operand : {found.query, found.value}) {
      const std::optional<Value> four = before_view(operand, false);
      if (four) return {tensor(*four).sizes[0], tensor(*four).sizes[1]};
    }
    if (const std::optional<Value> four = before_view(found.key, true))
      return {tensor(*four).sizes[0], tensor(*four).sizes[1]};
    return as_one;
  }

  // In the new graph, of sizes [batch, heads, rows, columns], where the library's op can read it;
  // what is turned is turned back.
  std::optional<Value> four_dimensional(NodeId id, Value value, bool turned,
                                        std::pair<Index, Index> batch) {
    const std::optional<Value> four = before_view(value, turned);
    const bool as_before =
        four && tensor(*four).sizes[0] == batch.first && tensor(*four).sizes[1] == batch.second;
    Value made = as_before ? rewriter_.map(*four) : Value();
    if (!as_before) {
      TensorMeta meta = tensor(value);
      meta.sizes = {batch.first, batch.second, meta.sizes[1], meta.sizes[2]};
      meta.strides = {meta.strides[0] * batch.second, meta.strides[0], meta.strides[1],
                      meta.strides[2]};
      made = view(id, rewriter_.map(value), std::move(meta));
    }
    TensorMeta meta = rewriter_.result().tensor(made);
    if (!can_be_read(meta, turned ? 2 : 3)) return std::nullopt;
    if (turned) {
      std::swap(meta.sizes[2], meta.sizes[3]);
      std::swap(meta.strides[2], meta.strides[3]);
      made = add(id, "aten::transpose.int", {made, int64_t{2}, int64_t{3}}, std::move(meta));
    }
    return aligned(id, made, as_before ? *four : value);
  }

  // An input of the graph is at any address that the caller likes, which products take and the
  // kernels on a GPU do not: there it is copied. `old` is what the value is a view of.
  Value aligned(NodeId id, Value value, Value old) {
    TensorMeta meta = rewriter_.result().tensor(value);
    if (!meta.device.starts_with("cuda") ||
        graph_.node(aliases_.storage(old).node).kind != NodeKind::kInput)
      return value;
    meta.strides = contiguous_strides(graph_.context(), meta.sizes);
    meta.offset = graph_.context().constant(0);
    return add(id, "aten::clone", {value}, std::move(meta),
               {{"memory_format", MemoryFormatArg{0}}});
  }

  // ---- the new calls ----

  void replace(const SpeltOut& found, NodeId id) {
    const TensorMeta& result = tensor({id, 0});
    const std::pair<Index, Index> batch = batch_of(found);
    const std::optional<Value> keys = four_dimensional(id, found.key, true, batch);
    if (!keys) return;
    const std::optional<Value> query = four_dimensional(id, found.query, false, batch);
    const std::optional<Value> value = four_dimensional(id, found.value, false, batch);
    if (!query || !value) return;
    const Value mask = mask_of(found, id);

    TensorMeta laid_out = result;
    laid_out.sizes = {batch.first, batch.second, result.sizes[1], result.sizes[2]};
    const Index row = batch.second * result.sizes[2];
    laid_out.strides = {result.sizes[1] * row, result.sizes[2], row, graph_.context().constant(1)};
    laid_out.offset = graph_.context().constant(0);
    const Value is_masked = mask.valid() && !found.is_safe ? masked_rows(id, mask) : Value();
    Value attended = attention(found, id, {*query, *keys, *value}, mask, laid_out);
    if (is_masked.valid()) {
      // A softmax of nothing but -inf is NaN, and the library's op gives zeros.
      attended = add(id, "aten::masked_fill.Scalar",
                     {attended, is_masked, std::numeric_limits<double>::quiet_NaN()}, laid_out);
    }
    TensorMeta copied = laid_out;
    copied.strides = contiguous_strides(graph_.context(), copied.sizes);
    const Value copy =
        add(id, "aten::clone", {attended}, copied, {{"memory_format", MemoryFormatArg{0}}});
    rewriter_.replace({id, 0}, view(id, copy, result));
  }

  Value attention(const SpeltOut& found, NodeId id, const Operands& operands, Value mask,
                  const TensorMeta& meta) {
    const bool on_cuda = meta.device.starts_with("cuda");
    const std::string_view op = !on_cuda ? kCpuOp : mask.valid() ? kCudaMaskedOp : kCudaOp;
    const OpSchema& schema = *graph_.schemas().find(op);
    std::vector<Argument> arguments;
    for (const SchemaArgument& argument : schema.arguments)
      arguments.push_back(argument.default_value);
    const auto set = [&](std::string_view name, Argument value) {
      arguments[static_cast<size_t>(schema.find(name))] = std::move(value);
    };
    set("query", operands.query);
    set("key", operands.key);
    set("value", operands.value);
    set("scale", found.scale);
    if (op == kCudaMaskedOp) set("compute_log_sumexp", false);
    if (mask.valid()) {
      const std::vector<Index> sizes = {meta.sizes[0], meta.sizes[1], meta.sizes[2],
                                        tensor(found.key).sizes[2]};
      set(op == kCudaMaskedOp ? "attn_bias" : "attn_mask", expand(id, mask, sizes));
    }
    // What else the op returns nobody reads.
    std::vector<ValueMeta> outputs = {ValueMeta::of(meta)};
    for (size_t i = 1; i < schema.returns.size(); ++i) {
      const bool is_integer = schema.returns[i].name.starts_with("max_");
      outputs.push_back(is_integer ? ValueMeta::of(graph_.context().constant(0))
                                   : ValueMeta::of(nothing(meta)));
    }
    const Node& node = graph_.node(id);
    return {rewriter_.result().add_call(rewriter_.fresh_name(node.name), schema,
                                        std::move(arguments), std::move(outputs), node.stack),
            0};
  }

  TensorMeta nothing(const TensorMeta& like) const {
    TensorMeta meta = like;
    meta.dtype = DType::kFloat32;
    meta.sizes = {graph_.context().constant(0)};
    meta.strides = {graph_.context().constant(1)};
    return meta;
  }

  // What is added to the scores; invalid: nothing.
  Value mask_of(const SpeltOut& found, NodeId id) {
    if (found.bias.valid()) return aligned(id, rewriter_.map(found.bias), found.bias);
    if (!found.condition.valid()) return {};
    TensorMeta meta = tensor(found.condition);
    meta.dtype = tensor({id, 0}).dtype;
    meta.strides = contiguous_strides(graph_.context(), meta.sizes);
    meta.offset = graph_.context().constant(0);
    ArgumentList sizes;
    for (Index size : meta.sizes) sizes.push_back(as_argument(size));
    const Value zeros = add(id, "aten::full", {std::move(sizes), 0.0}, meta,
                            {{"dtype", meta.dtype}, {"device", DeviceArg{meta.device}}});
    return add(id, "aten::masked_fill.Scalar", {zeros, rewriter_.map(found.condition), -kInfinity},
               meta);
  }

  // Whether the mask is -inf for all keys.
  Value masked_rows(NodeId id, Value mask) {
    TensorMeta row = rewriter_.result().tensor(mask);
    row.sizes.back() = graph_.context().constant(1);
    row.strides = contiguous_strides(graph_.context(), row.sizes);
    row.offset = graph_.context().constant(0);
    const Value greatest = add(id, "aten::amax", {mask, ArgumentList{int64_t{-1}}, true}, row);
    row.dtype = DType::kBool;
    return add(id, "aten::eq.Scalar", {greatest, -kInfinity}, row);
  }

  static Argument as_argument(Index size) {
    return size.is_constant() ? Argument(size.constant()) : Argument(size);
  }

  Value view(NodeId id, Value value, TensorMeta meta) {
    ArgumentList sizes;
    for (Index size : meta.sizes) sizes.push_back(as_argument(size));
    return add(id, "aten::view", {value, std::move(sizes)}, std::move(meta));
  }

  Value expand(NodeId id, Value value, const std::vector<Index>& sizes) {
    TensorMeta meta = rewriter_.result().tensor(value);
    if (meta.sizes == sizes) return value;
    const size_t more = sizes.size() - meta.sizes.size();
    std::vector<Index> strides(sizes.size(), graph_.context().constant(0));
    ArgumentList wanted;
    for (size_t i = 0; i < sizes.size(); ++i) {
      wanted.push_back(as_argument(sizes[i]));
      if (i >= more && meta.sizes[i - more] == sizes[i]) strides[i] = meta.strides[i - more];
    }
    meta.sizes = sizes;
    meta.strides = std::move(strides);
    return add(id, "aten::expand", {value, std::move(wanted)}, std::move(meta));
  }

  Value add(NodeId id, std::string_view op, std::vector<Argument> arguments, TensorMeta meta,
            std::vector<std::pair<std::string, Argument>> keywords = {}) {
    return rewriter_.add_call(id, op, std::move(arguments), std::move(keywords), std::move(meta));
  }

  const Graph& graph_;
  const PassOptions& options_;
  AliasAnalysis aliases_;
  GraphRewriter rewriter_;
  ValueMap<uint32_t> uses_;
};

}  // namespace

Graph recognize_attention(const Graph& graph, const PassOptions& options) {
  return Recognizer(graph, options).run();
}

}  // namespace litz
