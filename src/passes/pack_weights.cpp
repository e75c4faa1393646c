#include "passes/pack_weights.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "graph/alias_analysis.h"
#include "graph/convolution_kernels.h"
#include "graph/packed_linear.h"
#include "passes/channels_last.h"
#include "passes/frozen_values.h"
#include "passes/graph_rewriter.h"
#include "passes/turn_weights.h"

namespace litz {
namespace {

// Rows of a product on a CPU for which MKL computes faster with columns that lie next to each
// other: 16 rows by 1024 x 1024 take 0.87 of the time, 64 rows by 1024 x 4096 take 0.91. With more
// rows the copies that it makes are little of the work, and with one row it is slower.
constexpr int64_t kFewestTurnedRows = 8;
constexpr int64_t kMostTurnedRows = 64;

// Rows of a product on a CPU that reads its weight from panels: with more of them packing in each
// call is little of the work, and the panels' memory gains nothing.
constexpr int64_t kFewestPackedRows = 2;
constexpr int64_t kMostPackedRows = 256;
constexpr int64_t kFewestPackedFactors = 16;

constexpr int64_t kUnit = 8;  // half floats of 16 bytes
// A product of half floats gains from whole vectors what a kernel more costs.
constexpr double kLeastMultiplyAdds = 1 << 28;
constexpr int64_t kFewestFactors = 128;  // and here a copy of the result

class Packer {
 public:
  Packer(const Graph& graph, const PassOptions& options)
      : graph_(graph),
        options_(options),
        aliases_(graph),
        frozen_(graph, aliases_),
        rewriter_(graph) {}

  Graph run() {
    find_fewest_rows();
    for (uint32_t i = 0; i < graph_.num_nodes(); ++i) {
      const NodeId id(i);
      if (graph_.node(id).kind != NodeKind::kCall ||
          !(pack_convolution(id) || pack_product(id) || turn_weight(id) || pad_weight(id)))
        rewriter_.copy(id);
    }
    return rewriter_.finish();
  }

 private:
  // The ops for the call; nullptr where there are none.
  const PackedConvolution* packed_form(const Node& node) const {
    if (node.schema->full_name() != "aten::convolution") return nullptr;
    for (const PackedConvolution& form : kPackedConvolutions) {
      if (argument(node, "transposed") == Argument(form.transposed) &&
          graph_.schemas().find(form.op) != nullptr && graph_.schemas().find(form.pack) != nullptr)
        return &form;
    }
    return nullptr;
  }

  bool pack_convolution(NodeId id) {
    const Node& node = graph_.node(id);
    const PackedConvolution* form = packed_form(node);
    if (form == nullptr) return false;
    const Value weight = argument(node, "weight").get<Value>();
    const Argument& bias = argument(node, "bias");
    const TensorMeta& result = graph_.tensor({id, 0});
    const TensorMeta& kernel = graph_.tensor(weight);
    // Its result is channels-last, whatever its operand is.
    if (!frozen_.depends_on_input(weight) || kernel.sizes.size() != 4 || result.sizes.size() != 4 ||
        !is_channels_last(graph_.context(), result) || has_turned_weight(graph_, node, options_))
      return false;
    for (const Argument* operand : {&argument(node, "input"), &argument(node, "weight"), &bias}) {
      if (operand->is_none()) continue;
      const TensorMeta& meta = graph_.tensor(operand->get<Value>());
      if (meta.dtype != DType::kFloat32 || meta.device != "cpu" ||
          meta.layout != TensorLayout::kStrided)
        return false;
    }
    TensorMeta packed = kernel;
    packed.layout = TensorLayout::kOther;
    packed.strides = contiguous_strides(graph_.context(), packed.sizes);
    packed.offset = graph_.context().constant(0);
    std::vector<Argument> geometry = {argument(node, "padding")};
    if (form->transposed) geometry.push_back(argument(node, "output_padding"));
    for (const char* name : {"stride", "dilation", "groups"})
      geometry.push_back(argument(node, name));

    std::vector<Argument> packing = {rewriter_.map(weight)};
    packing.insert(packing.end(), geometry.begin(), geometry.end());
    packing.push_back(input_sizes(node));
    const Value made = rewriter_.add_call(id, form->pack, std::move(packing), {}, packed);

    std::vector<Argument> calling = {rewriter_.map(argument(node, "input")), made,
                                     rewriter_.map(bias)};
    calling.insert(calling.end(), geometry.begin(), geometry.end());
    for (Argument nothing :
         {Argument(std::string("none")), Argument(ArgumentList{}), Argument(std::string())})
      calling.push_back(std::move(nothing));
    const Value called = rewriter_.add_call(id, form->op, std::move(calling), {}, result);
    rewriter_.replace({id, 0}, called);
    return true;
  }

  // For the library to choose the layout by; none where they are not known.
  Argument input_sizes(const Node& node) const {
    ArgumentList sizes;
    for (Index size : graph_.tensor(argument(node, "input").get<Value>()).sizes) {
      if (!size.is_constant()) return {};
      sizes.emplace_back(size.constant());
    }
    return sizes;
  }

  // The frozen second factor of a product, where it is one.
  std::optional<Value> frozen_factor(const Node& node) const {
    const std::string op = node.schema->full_name();
    if (op != "aten::mm" && op != "aten::addmm") return std::nullopt;
    const Value factor = argument(node, "mat2").get<Value>();
    if (!frozen_.depends_on_input(factor)) return std::nullopt;
    return factor;
  }

  // A weight lies in one way for all products with it.
  void find_fewest_rows() {
    for (uint32_t i = 0; i < graph_.num_nodes(); ++i) {
      const Node& node = graph_.node(NodeId(i));
      if (node.kind != NodeKind::kCall) continue;
      const std::optional<Value> factor = frozen_factor(node);
      if (!factor) continue;
      const Index size = node.outputs[0].tensor.sizes[0];
      const int64_t rows = size.is_constant() ? size.constant() : INT64_MAX;
      if (rows < kFewestPackedRows) continue;
      const auto [found, is_new] = fewest_rows_.try_emplace(*factor, rows);
      if (!is_new) found->second = std::min(found->second, rows);
    }
  }

  // The weight of a product that is a kernel, in the panels that the kernel reads.
  bool pack_product(NodeId id) {
    const Node& node = graph_.node(id);
    const std::optional<Value> factor = frozen_factor(node);
    if (!factor || options_.panel_columns == 0 || options_.is_library_call(node) ||
        graph_.schemas().find(std::string(kPackedLinear)) == nullptr ||
        aliases_.is_written({id, 0}))
      return false;
    const bool adds = node.schema->name == "aten::addmm";
    const Value input = argument(node, adds ? "mat1" : "self").get<Value>();
    Argument bias;
    if (adds) {
      if (!is_one(argument(node, "beta")) || !is_one(argument(node, "alpha"))) return false;
      bias = argument(node, "self");
    }
    const TensorMeta& left = graph_.tensor(input);
    const TensorMeta& right = graph_.tensor(*factor);
    const TensorMeta& result = graph_.tensor({id, 0});
    const bool pairs = right.dtype == DType::kBFloat16;
    if (right.device != "cpu" || left.dtype != right.dtype || result.dtype != right.dtype ||
        !(pairs ? options_.multiplies_pairs : right.dtype == DType::kFloat32) ||
        !is_row_major(graph_.context(), result) ||
        !(left.strides[0].is_constant(1) || left.strides[1].is_constant(1)))
      return false;
    for (const TensorMeta* meta : {&left, &right}) {
      if (meta->layout != TensorLayout::kStrided) return false;
      for (size_t i : {0, 1}) {
        if (!meta->sizes[i].is_constant() || meta->sizes[i].is_constant(0) ||
            !meta->strides[i].is_constant())
          return false;
      }
    }
    const int64_t rows = left.sizes[0].constant();
    const int64_t factors = right.sizes[0].constant();
    const int64_t columns = right.sizes[1].constant();
    if (rows < kFewestPackedRows || fewest_rows_.at(*factor) > kMostPackedRows ||
        factors < kFewestPackedFactors || factors > kMostConvolutionFactors ||
        columns < options_.panel_columns / 2)
      return false;
    const bool forced = options_.convolution_products == ConvolutionProducts::kOn;
    if (!forced && rows * factors * columns < kFewestMultiplyAdds) return false;
    const auto [packed, is_new] = packed_.try_emplace(*factor);
    if (is_new) packed->second = panels(id, *factor, factors, columns, pairs);
    rewriter_.replace({id, 0}, rewriter_.add_call(id, kPackedLinear,
                                                  {rewriter_.map(input), packed->second,
                                                   rewriter_.map(bias), columns},
                                                  {}, result));
    return true;
  }

  static bool is_one(const Argument& number) {
    return number == Argument(int64_t{1}) || number == Argument(1.0);
  }

  // The library makes them, once.
  Value panels(NodeId id, Value weight, int64_t factors, int64_t columns, bool pairs) {
    const int64_t of_word = pairs ? 2 : 1;
    const int64_t width = options_.panel_columns;
    const int64_t words = (factors + of_word - 1) / of_word;
    const int64_t count = (columns + width - 1) / width;
    TensorMeta meta = graph_.tensor(weight);
    const auto dense = [&](const ArgumentList& sizes) {
      meta.sizes.clear();
      for (const Argument& size : sizes)
        meta.sizes.push_back(graph_.context().constant(size.get<int64_t>()));
      meta.strides = contiguous_strides(graph_.context(), meta.sizes);
      meta.offset = graph_.context().constant(0);
      return meta;
    };
    Value made = rewriter_.map(weight);
    if (words * of_word != factors || count * width != columns ||
        !is_row_major(graph_.context(), meta)) {
      // Always a copy that lies row by row, as the view wants it.
      made = rewriter_.add_call(id, "aten::clone", {made}, {{"memory_format", MemoryFormatArg{0}}},
                                dense({factors, columns}));
      made = rewriter_.add_call(
          id, "aten::constant_pad_nd",
          {made,
           ArgumentList{int64_t{0}, count * width - columns, int64_t{0}, words * of_word - factors},
           int64_t{0}},
          {}, dense({words * of_word, count * width}));
    }
    ArgumentList sizes = {words, count, width};
    ArgumentList order = {int64_t{1}, int64_t{0}, int64_t{2}};
    ArgumentList turned = {count, words, width};
    if (pairs) {
      sizes = {words, int64_t{2}, count, width};
      order = {int64_t{2}, int64_t{0}, int64_t{3}, int64_t{1}};
      turned = {count, words, width, int64_t{2}};
    }
    made = rewriter_.add_call(id, "aten::view", {made, sizes}, {}, dense(sizes));
    TensorMeta permuted = meta;
    for (size_t i = 0; i < order.size(); ++i) {
      const auto from = static_cast<size_t>(order[i].get<int64_t>());
      permuted.sizes[i] = meta.sizes[from];
      permuted.strides[i] = meta.strides[from];
    }
    made = rewriter_.add_call(id, "aten::permute", {made, order}, {}, permuted);
    return rewriter_.add_call(id, "aten::clone", {made}, {{"memory_format", MemoryFormatArg{0}}},
                              dense(turned));
  }

  bool turn_weight(NodeId id) {
    const Node& node = graph_.node(id);
    const std::optional<Value> factor = frozen_factor(node);
    if (!factor || !options_.library_products) return false;
    const TensorMeta& meta = graph_.tensor(*factor);
    const Index rows = graph_.tensor({id, 0}).sizes[0];
    if (!rows.is_constant() || rows.constant() < kFewestTurnedRows ||
        rows.constant() > kMostTurnedRows)
      return false;
    if (meta.device != "cpu" || meta.dtype != DType::kFloat32 || !meta.strides[0].is_constant(1) ||
        is_row_major(graph_.context(), meta))
      return false;
    TensorMeta turned = meta;
    turned.strides = contiguous_strides(graph_.context(), meta.sizes);
    turned.offset = graph_.context().constant(0);
    const Value copy = rewriter_.add_call(id, "aten::clone", {rewriter_.map(*factor)},
                                          {{"memory_format", MemoryFormatArg{0}}}, turned);
    replace_factor(id, copy);
    return true;
  }

  void replace_factor(NodeId id, Value factor) {
    const Node& node = graph_.node(id);
    std::vector<Argument> arguments = rewriter_.map(node.arguments);
    arguments[static_cast<size_t>(node.schema->find("mat2"))] = factor;
    rewriter_.copy_call(id, std::move(arguments));
  }

  // More columns of zeros, which make columns of the result that nobody reads.
  bool pad_weight(NodeId id) {
    const Node& node = graph_.node(id);
    const std::optional<Value> factor = frozen_factor(node);
    if (!factor) return false;
    const TensorMeta& meta = graph_.tensor(*factor);
    const TensorMeta& result = graph_.tensor({id, 0});
    if (!meta.device.starts_with("cuda") || !is_half(meta.dtype) || aliases_.is_written({id, 0}) ||
        !result.sizes[0].is_constant())
      return false;
    const int64_t factors = meta.sizes[0].constant();
    const int64_t columns = meta.sizes[1].constant();
    const int64_t wide = (columns + kUnit - 1) / kUnit * kUnit;
    if (wide == columns || factors % kUnit != 0 || factors < kFewestFactors ||
        static_cast<double>(result.sizes[0].constant()) * factors * columns < kLeastMultiplyAdds)
      return false;
    std::vector<Argument> arguments = rewriter_.map(node.arguments);
    if (node.schema->name == "aten::addmm") {
      const Value bias = argument(node, "self").get<Value>();
      if (!frozen_.depends_on_input(bias) || graph_.tensor(bias).sizes.size() != 1 ||
          !graph_.tensor(bias).sizes[0].is_constant(columns))
        return false;
      arguments[0] = padded(id, bias, wide);
    }
    arguments[static_cast<size_t>(node.schema->find("mat2"))] = padded(id, *factor, wide);
    TensorMeta wider = result;
    wider.sizes[1] = graph_.context().constant(wide);
    wider.strides = contiguous_strides(graph_.context(), wider.sizes);
    const NodeId product =
        rewriter_.result().add_call(rewriter_.fresh_name(node.name), *node.schema,
                                    std::move(arguments), {ValueMeta::of(wider)}, node.stack);
    TensorMeta narrow = result;
    narrow.strides = wider.strides;
    Value columns_of_result = rewriter_.add_call(
        id, "aten::slice.Tensor", {Value{product, 0}, int64_t{1}, int64_t{0}, columns, int64_t{1}},
        {}, narrow);
    // The caller gets eager's strides. The copy takes less than what is saved.
    if (aliases_.is_visible({id, 0}))
      columns_of_result = rewriter_.add_call(id, "aten::clone", {columns_of_result},
                                             {{"memory_format", MemoryFormatArg{0}}}, result);
    rewriter_.replace({id, 0}, columns_of_result);
    return true;
  }

  Value padded(NodeId id, Value value, int64_t columns) {
    TensorMeta meta = graph_.tensor(value);
    const int64_t more = columns - meta.sizes.back().constant();
    meta.sizes.back() = graph_.context().constant(columns);
    meta.strides = contiguous_strides(graph_.context(), meta.sizes);
    meta.offset = graph_.context().constant(0);
    return rewriter_.add_call(id, "aten::constant_pad_nd",
                              {rewriter_.map(value), ArgumentList{int64_t{0}, more}, int64_t{0}},
                              {}, meta);
  }

  const Graph& graph_;
  const PassOptions& options_;
  const AliasAnalysis aliases_;
  const FrozenValues frozen_;
  GraphRewriter rewriter_;
  std::map<Value, int64_t> fewest_rows_;  // of products with a frozen weight, by that
  std::map<Value, Value> packed_;         // panels by the weight
};

}  // namespace

Graph pack_weights(const Graph& graph, const PassOptions& options) {
  return has_frozen_inputs(graph) ? Packer(graph, options).run() : graph;
}

}  // namespace litz
