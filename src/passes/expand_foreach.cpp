#include "passes/expand_foreach.h"

#include <string>
#include <unordered_set>

#include "passes/graph_rewriter.h"
#include "support/error.h"

namespace litz {
namespace {

// An op on lists and the one that it is for each tensor. Arguments are told by their names, those
// of other names by their positions.
struct ForeachRow {
  std::string_view op;  // behind "aten::_foreach_"
  std::string_view single;
};

constexpr ForeachRow kRows[] = {
    {"abs", "abs"},
    {"acos", "acos"},
    {"add.List", "add.Tensor"},
    {"add.Scalar", "add.Scalar"},
    {"add.ScalarList", "add.Scalar"},
    {"add.Tensor", "add.Tensor"},
    {"addcdiv.Scalar", "addcdiv"},
    {"addcdiv.ScalarList", "addcdiv"},
    {"addcmul.Scalar", "addcmul"},
    {"addcmul.ScalarList", "addcmul"},
    {"asin", "asin"},
    {"atan", "atan"},
    {"ceil", "ceil"},
    {"clamp_max.List", "clamp_max.Tensor"},
    {"clamp_max.Scalar", "clamp_max"},
    {"clamp_max.ScalarList", "clamp_max"},
    {"clamp_min.List", "clamp_min.Tensor"},
    {"clamp_min.Scalar", "clamp_min"},
    {"clamp_min.ScalarList", "clamp_min"},
    {"clone", "clone"},
    {"copy", "copy"},
    {"cos", "cos"},
    {"cosh", "cosh"},
    {"div.List", "div.Tensor"},
    {"div.Scalar", "div.Scalar"},
    {"div.ScalarList", "div.Scalar"},
    {"div.Tensor", "div.Tensor"},
    {"erf", "erf"},
    {"erfc", "erfc"},
    {"exp", "exp"},
    {"expm1", "expm1"},
    {"floor", "floor"},
    {"frac", "frac"},
    {"lerp.List", "lerp.Tensor"},
    {"lerp.Scalar", "lerp.Scalar"},
    {"lerp.ScalarList", "lerp.Scalar"},
    {"lgamma", "lgamma"},
    {"log", "log"},
    {"log10", "log10"},
    {"log1p", "log1p"},
    {"log2", "log2"},
    {"max", "max"},
    {"maximum.List", "maximum"},
    {"maximum.Scalar", "clamp_min"},
    {"maximum.ScalarList", "clamp_min"},
    {"minimum.List", "minimum"},
    {"minimum.Scalar", "clamp_max"},
    {"minimum.ScalarList", "clamp_max"},
    {"mul.List", "mul.Tensor"},
    {"mul.Scalar", "mul.Scalar"},
    {"mul.ScalarList", "mul.Scalar"},
    {"mul.Tensor", "mul.Tensor"},
    {"neg", "neg"},
    {"norm.Scalar", "linalg_vector_norm"},
    {"pow.List", "pow.Tensor_Tensor"},
    {"pow.Scalar", "pow.Tensor_Scalar"},
    {"pow.ScalarAndTensor", "pow.Scalar"},
    {"pow.ScalarList", "pow.Tensor_Scalar"},
    {"reciprocal", "reciprocal"},
    {"round", "round"},
    {"rsqrt", "rsqrt"},
    {"sigmoid", "sigmoid"},
    {"sign", "sign"},
    {"sin", "sin"},
    {"sinh", "sinh"},
    {"sqrt", "sqrt"},
    {"sub.List", "sub.Tensor"},
    {"sub.Scalar", "sub.Scalar"},
    {"sub.ScalarList", "sub.Scalar"},
    {"tan", "tan"},
    {"tanh", "tanh"},
    {"trunc", "trunc"},
    {"zero", "zeros_like"},
};

constexpr std::string_view kPrefix = "aten::_foreach_";

std::string_view single_op(std::string_view full_name) {
  if (!full_name.starts_with(kPrefix)) return {};
  full_name.remove_prefix(kPrefix.size());
  for (const ForeachRow& row : kRows) {
    if (row.op == full_name) return row.single;
  }
  return {};
}

class Expander {
 public:
  explicit Expander(const Graph& graph) : graph_(graph), rewriter_(graph) {
    for (uint32_t i = 0; i < graph.num_nodes(); ++i) names_.insert(graph.node(NodeId(i)).name);
  }

  Graph run() {
    for (uint32_t i = 0; i < graph_.num_nodes(); ++i) {
      const NodeId id(i);
      if (const OpSchema* single = single_schema(graph_.node(id))) {
        expand(id, *single);
      } else {
        rewriter_.copy(id);
      }
    }
    return rewriter_.finish();
  }

 private:
  // nullptr where the node stays as it is.
  const OpSchema* single_schema(const Node& node) const {
    if (node.kind != NodeKind::kCall) return nullptr;
    const std::string_view op = single_op(node.schema->full_name());
    if (op.empty()) return nullptr;
    for (size_t i = 0; i < node.arguments.size(); ++i) {
      if (!node.schema->arguments[i].is_list) continue;
      if (node.arguments[i].get<ArgumentList>().size() != node.outputs.size()) return nullptr;
    }
    return graph_.schemas().find("aten::" + std::string(op));
  }

  void expand(NodeId id, const OpSchema& single) {
    const Node& node = graph_.node(id);
    const std::vector<Argument> arguments = rewriter_.map(node.arguments);
    for (uint32_t i = 0; i < node.outputs.size(); ++i) {
      std::vector<Argument> own;
      for (const SchemaArgument& argument : single.arguments) own.push_back(argument.default_value);
      for (size_t k = 0; k < arguments.size(); ++k) {
        const SchemaArgument& from = node.schema->arguments[k];
        const int by_name = single.find(from.name);
        const size_t to = by_name >= 0 ? static_cast<size_t>(by_name) : k;
        LITZ_CHECK(to < own.size(),
                   node.schema->full_name() + " has more arguments than " + single.full_name());
        own[to] = from.is_list ? arguments[k].get<ArgumentList>()[i] : arguments[k];
      }
      rewriter_.replace({id, i}, call(id, i, single, std::move(own)));
    }
  }

  Value call(NodeId id, uint32_t i, const OpSchema& single, std::vector<Argument> arguments) {
    const Node& node = graph_.node(id);
    const OpSchema* schema = &single;
    const bool is_quotient = single.name == "aten::div" && !arguments[1].is_value();
    // Eager's kernel for lists divides, while the one for a tensor and a number multiplies by the
    // reciprocal on a GPU.
    if (is_quotient && node.outputs[i].tensor.device.starts_with("cuda")) {
      schema = graph_.schemas().find("aten::div.Tensor");
      arguments[1] = number(id, i, arguments[1]);
    }
    return {rewriter_.result().add_call(fresh_name(node.name, i), *schema, std::move(arguments),
                                        {node.outputs[i]}, node.stack),
            0};
  }

  // A tensor of no dimensions.
  Value number(NodeId id, uint32_t i, const Argument& value) {
    const Node& node = graph_.node(id);
    TensorMeta meta;
    meta.dtype = DType::kFloat64;
    meta.offset = graph_.context().constant(0);
    meta.device = node.outputs[i].tensor.device;
    const OpSchema& full = *graph_.schemas().find("aten::full");
    std::vector<Argument> arguments(full.arguments.size());
    for (size_t k = 0; k < arguments.size(); ++k) arguments[k] = full.arguments[k].default_value;
    arguments[static_cast<size_t>(full.find("size"))] = ArgumentList{};
    arguments[static_cast<size_t>(full.find("fill_value"))] = value;
    arguments[static_cast<size_t>(full.find("dtype"))] = meta.dtype;
    arguments[static_cast<size_t>(full.find("device"))] = DeviceArg{meta.device};
    return {rewriter_.result().add_call(fresh_name(node.name + "_number", i), full,
                                        std::move(arguments), {ValueMeta::of(std::move(meta))},
                                        node.stack),
            0};
  }

  std::string fresh_name(const std::string& stem, uint32_t i) {
    std::string name = stem + "_of_" + std::to_string(i);
    while (!names_.insert(name).second) name += "_";
    return name;
  }

  const Graph& graph_;
  GraphRewriter rewriter_;
  std::unordered_set<std::string> names_;
};

}  // namespace

Graph expand_foreach(const Graph& graph) { return Expander(graph).run(); }

}  // namespace litz
