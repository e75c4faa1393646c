#include "graph/verify_graph.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <unordered_set>

#include "graph/bind_arguments.h"
#include "graph/op_traits.h"
#include "graph/print_graph.h"
#include "support/error.h"

namespace litz {
namespace {

bool is_identifier(std::string_view name) {
  return !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

// Nothing where a size is symbolic, or the number too large.
std::optional<int64_t> number_of_elements(const TensorMeta& tensor) {
  int64_t elements = 1;
  for (const Index size : tensor.sizes) {
    if (!size.is_constant() || __builtin_mul_overflow(elements, size.constant(), &elements))
      return std::nullopt;
  }
  return elements;
}

bool is_device(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == ':';
  });
}

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  void run() {
    for (uint32_t i = 0; i < graph_.num_nodes(); ++i) {
      node_ = NodeId(i);
      check_node(graph_.node(node_));
    }
    node_ = NodeId(static_cast<uint32_t>(graph_.num_nodes()));
    for (const Argument& output : graph_.outputs()) check_output(output);
    check_free_layouts();
  }

 private:
  void check(bool holds, int invariant, const std::string& problem) const {
    if (!holds) fail(invariant, problem);
  }

  // The node is named, not printed: printing needs the invariants to hold.
  [[noreturn]] void fail(int invariant, const std::string& problem) const {
    std::string where = "the outputs of the graph";
    if (node_.value < graph_.num_nodes()) {
      const Node& node = graph_.node(node_);
      where = "node '" + node.name + "'";
      if (node.schema != nullptr) where += " (" + node.schema->full_name() + ")";
      if (!node.stack.empty()) where += " from " + node.stack;
    }
    throw InternalError("graph invariant " + std::to_string(invariant) + ": " + problem + ", in " +
                        where);
  }

  void check_node(const Node& node) {
    check(!node.name.empty() && names_.insert(node.name).second, 2, "the name is empty or taken");
    if (node.kind == NodeKind::kCall) {
      check_call(node);
    } else {
      check(node.outputs.size() == 1 && node.arguments.empty() && node.schema == nullptr, 9,
            "an input or a constant has arguments, or not one result");
      check(node.outputs[0].kind != ValueMeta::Kind::kNone, 9, "an input is None");
    }
    if (node.kind == NodeKind::kInput) {
      check(inputs_ == node_.value, 1, "an input after another node");
      ++inputs_;
    }
    for (const ValueMeta& meta : node.outputs) check_meta(meta);
    if (node.kind == NodeKind::kConstant) check_constant(node);
    if (node.kind == NodeKind::kCall) check_view(node);
  }

  void check_call(const Node& node) {
    check(node.schema != nullptr, 3, "a call without schema");
    const OpSchema& schema = *node.schema;
    check(node.arguments.size() == schema.arguments.size(), 3,
          std::to_string(node.arguments.size()) + " arguments for " +
              std::to_string(schema.arguments.size()) + " of the schema");
    for (size_t i = 0; i < node.arguments.size(); ++i)
      check_argument(schema.arguments[i], node.arguments[i]);
    check_results(node);
  }

  void check_argument(const SchemaArgument& schema, const Argument& argument) {
    for_each_value(argument, [&](Value value) {
      check_use(value);
      const ValueMeta::Kind kind = graph_.meta(value).kind;
      const bool fits =
          schema.base == SchemaType::kTensor
              ? kind != ValueMeta::Kind::kNone
              : kind == ValueMeta::Kind::kInt || kind == ValueMeta::Kind::kOtherScalar;
      check(fits, 5,
            "argument '" + schema.name + "' of type " + schema.type + " is the value " +
                to_string(graph_, value) + " of another kind");
    });
    for_each_index(argument,
                   [&](Index index) { check_index(index, "argument '" + schema.name + "'"); });
    Argument stored = argument;
    check(fit_argument(schema, stored) && stored == argument, 5,
          "argument '" + schema.name + "' is not stored as its type " + schema.type + " asks");
  }

  void check_use(Value value) const {
    check(value.valid() && value.node < node_ && graph_.contains(value), 4,
          "a value that is no result of an earlier node");
  }

  void check_results(const Node& node) const {
    const OpSchema& schema = *node.schema;
    const auto lists = std::count_if(schema.returns.begin(), schema.returns.end(),
                                     [](const SchemaArgument& r) { return r.is_list; });
    const size_t count = node.outputs.size();
    const size_t fixed = schema.returns.size() - static_cast<size_t>(lists);
    check(lists > 0 ? count >= fixed : count == fixed, 6,
          std::to_string(count) + " results for " + std::to_string(fixed) + " of the schema");
    for (size_t i = 0; i < count; ++i) {
      const SchemaArgument& result = schema.returns[return_of_output(schema, count, i)];
      const ValueMeta::Kind kind = node.outputs[i].kind;
      const bool fits = result.base == SchemaType::kTensor
                            ? kind == ValueMeta::Kind::kTensor || kind == ValueMeta::Kind::kNone
                            : kind != ValueMeta::Kind::kTensor;
      check(fits, 6, "result " + std::to_string(i) + " is not a " + result.type);
    }
  }

  void check_meta(const ValueMeta& meta) {
    if (meta.kind == ValueMeta::Kind::kInt) check_index(meta.integer, "the integer");
    if (!meta.is_tensor()) return;
    const TensorMeta& tensor = meta.tensor;
    check(tensor.sizes.size() == tensor.strides.size(), 7,
          std::to_string(tensor.sizes.size()) + " sizes and " +
              std::to_string(tensor.strides.size()) + " strides");
    check(tensor.offset.valid(), 7, "no offset");
    check(is_device(tensor.device), 7, "device '" + tensor.device + "' is not a word");
    for (const Index size : tensor.sizes) {
      check_index(size, "a size");
      check(!size.is_constant() || size.constant() >= 0, 8, "a negative size");
    }
    for (const Index stride : tensor.strides) check_index(stride, "a stride");
    check_index(tensor.offset, "the offset");
    check(!tensor.offset.is_constant() || tensor.offset.constant() >= 0, 8, "a negative offset");
  }

  void check_index(Index index, const std::string& what) {
    check(index.valid(), 8, what + " is not set");
    check(&index.context() == &graph_.context(), 8, what + " belongs to another context");
    if (!checked_.insert(index).second) return;
    for (const Index symbol : free_symbols(index)) {
      check(symbol.symbol_kind() == SymbolKind::kSize && is_identifier(symbol.symbol_name()), 8,
            what + " depends on '" + std::string(symbol.symbol_name()) +
                "', which is no size symbol");
    }
  }

  void check_constant(const Node& node) const {
    check(node.outputs[0].is_tensor(), 10, "a constant that is no tensor");
    const TensorMeta& tensor = node.outputs[0].tensor;
    check(tensor.layout == TensorLayout::kStrided, 10, "a constant of another layout");
    int64_t elements = 1;
    for (const Index size : tensor.sizes) {
      check(size.is_constant(), 10, "a constant of symbolic size");
      elements *= size.constant();
    }
    check(tensor.strides == contiguous_strides(graph_.context(), tensor.sizes) &&
              tensor.offset.is_constant(0),
          10, "a constant that is not contiguous");
    const int64_t bytes = elements * size_of(tensor.dtype);
    check(
        static_cast<int64_t>(node.constant_bytes.size()) == bytes, 10,
        std::to_string(node.constant_bytes.size()) + " bytes instead of " + std::to_string(bytes));
  }

  void check_view(const Node& node) const {
    const std::string op = node.schema->full_name();
    if (op != "aten::view" && op != "aten::_unsafe_view" && op != "aten::reshape") return;
    if (!node.outputs[0].is_tensor()) return;
    const auto given = number_of_elements(graph_.tensor(node.arguments[0].get<Value>()));
    const auto made = number_of_elements(node.outputs[0].tensor);
    if (!given || !made) return;
    check(*given == *made, 13,
          "a view of " + std::to_string(*made) + " elements of " + std::to_string(*given));
  }

  void check_output(const Argument& output) {
    if (output.is_value()) check_use(output.get<Value>());
    if (output.holds<Index>()) check_index(output.get<Index>(), "an output");
    check(output.is_none() || output.is_value() || output.holds<int64_t>() ||
              output.holds<double>() || output.holds<bool>() ||
              output.holds<std::complex<double>>() || output.holds<Index>(),
          11, "an output that is neither a value nor a scalar");
  }

  void check_free_layouts() {
    const std::vector<uint32_t>& outputs = graph_.free_layouts();
    for (size_t i = 0; i < outputs.size(); ++i) {
      check(i == 0 || outputs[i - 1] < outputs[i], 12, "outputs of free layout out of order");
      check(outputs[i] < graph_.outputs().size() && graph_.outputs()[outputs[i]].is_value() &&
                graph_.meta(graph_.outputs()[outputs[i]].get<Value>()).is_tensor(),
            12, "an output of free layout that is no tensor");
    }
  }

  const Graph& graph_;
  NodeId node_;
  uint32_t inputs_ = 0;  // inputs seen so far
  std::unordered_set<std::string_view> names_;
  std::unordered_set<Index> checked_;
};

}  // namespace

void verify_graph(const Graph& graph) { Verifier(graph).run(); }

}  // namespace litz
