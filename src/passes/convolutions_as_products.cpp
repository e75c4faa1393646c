#include "passes/convolutions_as_products.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "graph/alias_analysis.h"
#include "graph/convolution_kernels.h"
#include "graph/op_traits.h"
#include "passes/channels_last.h"
#include "passes/frozen_values.h"
#include "passes/graph_rewriter.h"

namespace litz {
namespace {

using Sizes = std::vector<int64_t>;

// Measured on one thread of an AVX2 machine, against oneDNN with and without packed weights.
constexpr int64_t kFewestElements = 16;  // of a product's rows, columns and factors
constexpr int64_t kFewestMultiplyAdds = 1 << 15;
constexpr int64_t kFewestPixels = 512;        // of a row-major image
constexpr int64_t kFewestOutputsOfCopy = 96;  // the copy is little beside so many
constexpr int64_t kFewestNeighbours = 8;      // that a copy of a row-major image moves at once

std::optional<Sizes> constants(std::span<const Index> sizes) {
  Sizes result;
  for (Index size : sizes) {
    if (!size.is_constant()) return std::nullopt;
    result.push_back(size.constant());
  }
  return result;
}

// A list that has one entry for all dimensions, or one for each.
std::optional<Sizes> geometry(const Node& node, std::string_view name, size_t dims) {
  Sizes result;
  for (const Argument& entry : argument(node, name).get<ArgumentList>()) {
    if (!entry.holds<int64_t>()) return std::nullopt;
    result.push_back(entry.get<int64_t>());
  }
  if (result.size() == 1) result.resize(dims, result[0]);
  if (result.size() != dims) return std::nullopt;
  return result;
}

bool all_are(const Sizes& sizes, int64_t value) {
  return std::all_of(sizes.begin(), sizes.end(), [&](int64_t size) { return size == value; });
}

int64_t product_of(const Sizes& sizes) {
  int64_t product = 1;
  for (int64_t size : sizes) product *= size;
  return product;
}

struct Convolution {
  Value input;
  Value weight;
  Argument bias;
  int64_t images = 0;
  int64_t channels = 0;
  int64_t outputs = 0;
  Sizes kernel;
  Sizes stride;
  Sizes result;  // height and width, or length, or ...
  bool channels_last = false;

  int64_t pixels() const { return product_of(result); }
  int64_t factors() const { return channels * product_of(kernel); }
  // Its rows are in memory as they are.
  bool is_pointwise() const { return all_are(kernel, 1) && all_are(stride, 1); }
};

class Multiplier {
 public:
  Multiplier(const Graph& graph, const PassOptions& options)
      : graph_(graph),
        options_(options),
        aliases_(graph),
        frozen_(graph, aliases_),
        shares_(!has_mutations(graph)),
        rewriter_(graph) {}

  Graph run() {
    for (uint32_t i = 0; i < graph_.num_nodes(); ++i) {
      const NodeId id(i);
      const std::optional<Convolution> convolution = find_wanted(id);
      if (!convolution) {
        rewriter_.copy(id);
        continue;
      }
      at_ = id;
      rewriter_.replace({id, 0}, convolution->channels_last ? multiply_rows(*convolution)
                                                            : multiply_images(*convolution));
    }
    return rewriter_.finish();
  }

  std::optional<Convolution> find_wanted(NodeId id) const {
    const Node& node = graph_.node(id);
    if (options_.is_library_call(node)) return std::nullopt;
    std::optional<Convolution> found = find(id);
    if (!found || options_.convolution_products == ConvolutionProducts::kOn) return found;
    const bool is_kernel = options_.convolution_products == ConvolutionProducts::kAuto &&
                           pays(*found) && options_.choice(graph_, node).value_or(true);
    return is_kernel ? found : std::nullopt;
  }

 private:
  std::optional<Convolution> find(NodeId id) const {
    const Node& node = graph_.node(id);
    if (node.kind != NodeKind::kCall || node.schema->full_name() != "aten::convolution" ||
        argument(node, "transposed") == Argument(true) ||
        argument(node, "groups") != Argument(int64_t{1}))
      return std::nullopt;
    Convolution found;
    found.input = argument(node, "input").get<Value>();
    found.weight = argument(node, "weight").get<Value>();
    found.bias = argument(node, "bias");
    const TensorMeta& input = graph_.tensor(found.input);
    const TensorMeta& weight = graph_.tensor(found.weight);
    const TensorMeta& result = node.outputs[0].tensor;
    if (!options_.convolves(result.dtype)) return std::nullopt;
    for (const TensorMeta* tensor : {&input, &weight, &result}) {
      if (tensor->dtype != result.dtype || tensor->device != "cpu" ||
          tensor->layout != TensorLayout::kStrided || tensor->sizes.size() != weight.sizes.size() ||
          product(graph_.context(), tensor->sizes).range().lo < 1)
        return std::nullopt;
    }
    if (found.bias.is_value() && graph_.tensor(found.bias.get<Value>()).dtype != result.dtype)
      return std::nullopt;
    const auto in = constants(input.sizes);
    const auto of_weight = constants(weight.sizes);
    const auto out = constants(result.sizes);
    const size_t dims = weight.sizes.size() - 2;
    const auto stride = geometry(node, "stride", dims);
    const auto padding = geometry(node, "padding", dims);
    if (!in || !of_weight || !out || !stride || !padding || !all_are(*padding, 0))
      return std::nullopt;
    found.images = (*in)[0];
    found.channels = (*in)[1];
    found.outputs = (*out)[1];
    found.kernel.assign(of_weight->begin() + 2, of_weight->end());
    found.stride = *stride;
    found.result.assign(out->begin() + 2, out->end());
    // Side by side, or single pixels that may lie apart. Between pixels of a larger window are
    // none left out.
    const auto dilation = geometry(node, "dilation", dims);
    if (!all_are(found.kernel, 1) &&
        (found.kernel != found.stride || !dilation || !all_are(*dilation, 1)))
      return std::nullopt;
    for (const TensorMeta* tensor : {&input, &weight, &result}) {
      if (!is_channels_last(graph_.context(), *tensor) && !is_row_major(graph_.context(), *tensor))
        return std::nullopt;
    }
    found.channels_last = is_channels_last(graph_.context(), result);
    // Kernels that convolve read pixels that are apart where they are.
    if (found.channels_last && dims == 2 && found.result[1] > 1 && all_are(found.kernel, 1) &&
        !all_are(found.stride, 1) && is_channels_last(graph_.context(), input))
      return std::nullopt;
    return found;
  }

  bool pays(const Convolution& c) const {
    if (graph_.tensor(c.input).dtype == DType::kBFloat16 && !options_.multiplies_tiles)
      return false;
    const int64_t rows = c.channels_last ? c.images * c.pixels() : c.pixels();
    if (c.factors() > kMostConvolutionFactors) return false;
    if (c.outputs < kFewestElements || c.factors() < kFewestElements || rows < kFewestElements ||
        c.images * c.pixels() * c.factors() * c.outputs < kFewestMultiplyAdds)
      return false;
    if (c.is_pointwise()) return c.channels_last || rows >= kFewestPixels;
    if (c.outputs < kFewestOutputsOfCopy) return false;
    if (all_are(c.kernel, 1)) return false;
    return c.channels_last || c.kernel.back() >= kFewestNeighbours;
  }

  // ---- rows of pixels ----

  Value multiply_rows(const Convolution& c) {
    return call("aten::permute", {rows_of_result(c), list(channels_to_front())},
                graph_.tensor({at_, 0}));
  }

  // The result with the channels behind.
  Value rows_of_result(const Convolution& c) {
    const int64_t rows = c.images * c.pixels();
    const Value left = view(windows_as_rows(c), {rows, c.factors()});
    const auto [factor, is_new] = factors_.try_emplace({c.weight, has_channels_behind(c)});
    if (is_new || !shares_) {
      factor->second = transposed(weight_as_rows(c));
      // Once, so that packing it in each call copies whole vectors.
      if (frozen_.depends_on_input(c.weight)) factor->second = copied(factor->second);
    }
    const Value right = factor->second;
    const TensorMeta meta = contiguous({rows, c.outputs});
    const Value product =
        c.bias.is_value()
            ? call("aten::addmm", {rewriter_.map(c.bias.get<Value>()), left, right}, meta)
            : call("aten::mm", {left, right}, meta);
    Sizes sizes = {c.images};
    sizes.insert(sizes.end(), c.result.begin(), c.result.end());
    sizes.push_back(c.outputs);
    return view(product, sizes);
  }

  // Images, windows and what is in them, without gaps.
  Value windows_as_rows(const Convolution& c) {
    const size_t dims = c.kernel.size();
    Value input = rewriter_.map(c.input);
    if (c.is_pointwise() && is_channels_last(graph_.context(), graph_.tensor(c.input)))
      return permuted(input, channels_to_back());
    if (all_are(c.kernel, 1)) {
      for (size_t i = 0; i < dims; ++i) input = strided(input, i + 2, c.result[i], c.stride[i]);
      return copied(permuted(input, channels_to_back()));
    }
    for (size_t i = 0; i < dims; ++i) input = strided(input, i + 2, c.result[i] * c.kernel[i], 1);
    Sizes split = {c.images, c.channels};
    Sizes order = {0};
    Sizes within;
    for (size_t i = 0; i < dims; ++i) {
      split.push_back(c.result[i]);
      split.push_back(c.kernel[i]);
      order.push_back(static_cast<int64_t>(2 + 2 * i));
      within.push_back(static_cast<int64_t>(3 + 2 * i));
    }
    within.insert(has_channels_behind(c) ? within.end() : within.begin(), 1);
    order.insert(order.end(), within.begin(), within.end());
    return copied(permuted(view(input, split), order));
  }

  // In which order a window's elements are factors.
  bool has_channels_behind(const Convolution& c) const {
    return !is_row_major(graph_.context(), graph_.tensor(c.input));
  }

  // The weight as a matrix [outputs, factors].
  Value weight_as_rows(const Convolution& c) {
    Value weight = rewriter_.map(c.weight);
    const TensorMeta& meta = graph_.tensor(c.weight);
    if (!all_are(c.kernel, 1)) {
      const bool behind = has_channels_behind(c);
      if (behind) weight = permuted(weight, channels_to_back());
      if (!(behind ? is_channels_last(graph_.context(), meta)
                   : is_row_major(graph_.context(), meta)))
        weight = copied(weight);
    }
    return view(weight, {c.outputs, c.factors()});
  }

  // ---- images ----

  Value multiply_images(const Convolution& c) {
    const TensorMeta& meta = graph_.tensor({at_, 0});
    if (!c.is_pointwise() || !is_row_major(graph_.context(), graph_.tensor(c.input)))
      return rewriter_.add_call(at_, "aten::clone",
                                {permuted(rows_of_result(c), channels_to_front())},
                                {{"memory_format", MemoryFormatArg{0}}}, meta);
    const Value weight = weight_as_rows(c);
    Value result;
    if (c.images == 1) {
      const Value pixels = view(rewriter_.map(c.input), {c.channels, c.pixels()});
      result = call("aten::mm", {weight, pixels}, contiguous({c.outputs, c.pixels()}));
    } else {
      const Value pixels = view(rewriter_.map(c.input), {c.images, c.channels, c.pixels()});
      TensorMeta repeated = contiguous({c.images, c.outputs, c.channels});
      repeated.strides[0] = graph_.context().constant(0);
      const Value weights =
          call("aten::expand", {weight, list({c.images, c.outputs, c.channels})}, repeated);
      result = call("aten::bmm", {weights, pixels}, contiguous({c.images, c.outputs, c.pixels()}));
    }
    Sizes sizes = {c.images, c.outputs};
    sizes.insert(sizes.end(), c.result.begin(), c.result.end());
    result = call("aten::view", {result, list(sizes)}, meta);
    if (!c.bias.is_value()) return result;
    Sizes of_bias(sizes.size(), 1);
    of_bias[1] = c.outputs;
    const Value bias = view(rewriter_.map(c.bias.get<Value>()), of_bias);
    return call("aten::add.Tensor", {result, bias}, meta);
  }

  // ---- calls ----

  Value call(std::string_view op, std::vector<Argument> arguments, TensorMeta meta) {
    return rewriter_.add_call(at_, op, std::move(arguments), {}, std::move(meta));
  }

  static ArgumentList list(const Sizes& sizes) {
    ArgumentList entries;
    for (int64_t size : sizes) entries.emplace_back(size);
    return entries;
  }

  const TensorMeta& meta_of(Value value) { return rewriter_.result().tensor(value); }

  TensorMeta contiguous(const Sizes& sizes) const {
    TensorMeta meta = graph_.tensor({at_, 0});
    meta.sizes.clear();
    for (int64_t size : sizes) meta.sizes.push_back(graph_.context().constant(size));
    meta.strides = contiguous_strides(graph_.context(), meta.sizes);
    meta.offset = graph_.context().constant(0);
    return meta;
  }

  Value copied(Value value) {
    Sizes sizes = *constants(meta_of(value).sizes);
    return rewriter_.add_call(at_, "aten::clone", {value}, {{"memory_format", MemoryFormatArg{0}}},
                              contiguous(sizes));
  }

  // Of a tensor whose dimensions that become one lie in memory one after the other.
  Value view(Value value, const Sizes& sizes) {
    TensorMeta meta = contiguous(sizes);
    const TensorMeta& old = meta_of(value);
    meta.offset = old.offset;
    meta.strides = viewed_strides(old, meta.sizes);
    return call("aten::view", {value, list(sizes)}, meta);
  }

  // Each dimension of either side is a part of one of the other.
  std::vector<Index> viewed_strides(const TensorMeta& old, std::span<const Index> sizes) const {
    std::vector<Index> strides(sizes.size(), graph_.context().constant(1));
    size_t from = old.sizes.size();
    Index left = graph_.context().constant(1);  // elements of the old dimension that are not taken
    Index stride = graph_.context().constant(1);
    for (size_t i = sizes.size(); i-- > 0;) {
      int64_t wanted = sizes[i].constant();
      if (left.is_constant(1) && wanted != 1) {
        do {
          --from;
        } while (old.sizes[from].is_constant(1));
        left = old.sizes[from];
        stride = old.strides[from];
      }
      strides[i] = stride;
      while (wanted > left.constant()) {
        wanted /= left.constant();
        left = old.sizes[--from];
      }
      left = graph_.context().constant(left.constant() / wanted);
      stride = stride * sizes[i];
    }
    return strides;
  }

  Value permuted(Value value, const Sizes& order) {
    const TensorMeta old = meta_of(value);
    TensorMeta meta = old;
    for (size_t i = 0; i < order.size(); ++i) {
      meta.sizes[i] = old.sizes[static_cast<size_t>(order[i])];
      meta.strides[i] = old.strides[static_cast<size_t>(order[i])];
    }
    return call("aten::permute", {value, list(order)}, std::move(meta));
  }

  Value transposed(Value matrix) { return permuted(matrix, {1, 0}); }

  // The first elements of a dimension, so many, each `step` behind the one before.
  Value strided(Value value, size_t dim, int64_t count, int64_t step) {
    TensorMeta meta = meta_of(value);
    const int64_t size = meta.sizes[dim].constant();
    if (size == count && step == 1) return value;
    meta.sizes[dim] = graph_.context().constant(count);
    meta.strides[dim] = meta.strides[dim] * step;
    return call("aten::slice.Tensor",
                {value, static_cast<int64_t>(dim), int64_t{0}, (count - 1) * step + 1, step},
                std::move(meta));
  }

  Sizes channels_to_back() const {
    Sizes order = {0};
    const int64_t rank = static_cast<int64_t>(graph_.tensor({at_, 0}).sizes.size());
    for (int64_t i = 2; i < rank; ++i) order.push_back(i);
    order.push_back(1);
    return order;
  }
  Sizes channels_to_front() const {
    const int64_t rank = static_cast<int64_t>(graph_.tensor({at_, 0}).sizes.size());
    Sizes order = {0, rank - 1};
    for (int64_t i = 1; i + 1 < rank; ++i) order.push_back(i);
    return order;
  }

  const Graph& graph_;
  const PassOptions& options_;
  const AliasAnalysis aliases_;
  const FrozenValues frozen_;
  const bool shares_;  // what is made of a weight serves for all that it is used for
  std::map<std::pair<Value, bool>, Value> factors_;  // of weights, with the channels behind or not
  GraphRewriter rewriter_;
  NodeId at_;  // the convolution that is rewritten
};

}  // namespace

Graph convolutions_as_products(const Graph& graph, const PassOptions& options) {
  if (options.convolution_products == ConvolutionProducts::kOff) return graph;
  return Multiplier(graph, options).run();
}

bool is_convolution_product(const Graph& graph, NodeId id, const PassOptions& options) {
  return options.convolution_products != ConvolutionProducts::kOff &&
         Multiplier(graph, options).find_wanted(id).has_value();
}

}  // namespace litz
