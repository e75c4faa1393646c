#include "graph/print_graph.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <unordered_set>

#include "graph/number_text.h"
#include "support/escape.h"

namespace litz {
namespace {

constexpr size_t kMaxColumns = 100;
constexpr size_t kMaxElements = 16;

class Printer {
 public:
  explicit Printer(const Graph* graph) : graph_(graph) {}

  std::string take() { return std::move(out_); }

  void print_graph() {
    print_schemas();
    print_header();
    for (uint32_t i = 0; i < graph_->num_nodes(); ++i) {
      const NodeId id(i);
      if (graph_->node(id).kind == NodeKind::kInput) continue;
      out_ += "  ";
      print_node(id);
      out_ += '\n';
    }
    out_ += "  return (";
    print_list(graph_->outputs());
    out_ += ")";
    if (!graph_->free_layouts().empty()) {
      std::string list;
      for (uint32_t output : graph_->free_layouts())
        list += (list.empty() ? "" : ", ") + std::to_string(output);
      out_ += " free_layout(" + list + ")";
    }
    out_ += "\n}\n";
  }

  void print_node(NodeId id) {
    const Node& node = graph_->node(id);
    if (node.is_frozen) out_ += "frozen ";
    if (node.outputs.empty()) print_name(node.name);
    for (uint32_t i = 0; i < node.outputs.size(); ++i) {
      if (i > 0) out_ += ", ";
      print_name(node.name);
      if (node.outputs.size() > 1) out_ += ":" + std::to_string(i);
      out_ += ": ";
      print_meta(node.outputs[i]);
    }
    if (node.kind == NodeKind::kInput) return;
    out_ += " = ";
    if (node.kind == NodeKind::kConstant) {
      print_constant(node);
      return;
    }
    print_call(node);
    if (!node.stack.empty()) print_stack(node.stack);
  }

  void print_value(Value value) {
    print_name(graph_->node(value.node).name);
    if (value.output > 0) out_ += ":" + std::to_string(value.output);
  }

  void print_meta(const ValueMeta& meta) {
    switch (meta.kind) {
      case ValueMeta::Kind::kNone:
        out_ += "none";
        break;
      case ValueMeta::Kind::kTensor:
        print_tensor(meta.tensor);
        break;
      case ValueMeta::Kind::kInt:
        out_ += "int(" + to_string(meta.integer) + ")";
        break;
      case ValueMeta::Kind::kOtherScalar:
        out_ += "scalar";
        break;
    }
  }

  void print_tensor(const TensorMeta& meta) {
    out_ += to_string(meta.dtype);
    out_ += '[';
    print_indices(meta.sizes);
    out_ += ']';
    if (!has_contiguous_strides(meta)) {
      out_ += '{';
      print_indices(meta.strides);
      out_ += '}';
    }
    if (!meta.offset.is_constant(0)) out_ += " offset(" + to_string(meta.offset) + ")";
    if (meta.device != "cpu") out_ += " device(" + meta.device + ")";
    if (meta.layout == TensorLayout::kOther) out_ += " layout(other)";
  }

 private:
  static bool has_contiguous_strides(const TensorMeta& meta) {
    if (meta.strides.size() != meta.sizes.size()) return false;
    if (meta.sizes.empty()) return true;
    return meta.strides == contiguous_strides(meta.sizes[0].context(), meta.sizes);
  }

  void print_schemas() {
    std::vector<std::string> texts;
    const OpSchema* previous = nullptr;
    for (uint32_t i = 0; i < graph_->num_nodes(); ++i) {
      const OpSchema* schema = graph_->node(NodeId(i)).schema;
      if (schema == nullptr || schema == previous) continue;
      previous = schema;
      if (!checked_.insert(schema).second) continue;
      if (!SchemaRegistry::is_builtin_text(*schema)) texts.push_back(to_string(*schema));
    }
    std::sort(texts.begin(), texts.end());
    for (const std::string& text : texts) out_ += "schema " + text + "\n";
    if (!texts.empty()) out_ += '\n';
  }

  // All items on one line where they fit, else one a line.
  void print_header() {
    std::vector<std::string> items;
    for (const Index symbol : graph_->symbols()) items.push_back(symbol_text(symbol));
    for (const NodeId id : graph_->inputs()) {
      Printer item(graph_);
      item.print_node(id);
      items.push_back(item.take());
    }
    size_t columns = std::string_view("graph() {").size();
    for (const std::string& item : items) columns += item.size() + 2;
    const bool one_line = columns - 2 <= kMaxColumns;
    out_ += "graph(";
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += one_line ? ", " : ",";
      if (!one_line) out_ += "\n    ";
      out_ += items[i];
    }
    out_ += ") {\n";
  }

  static std::string symbol_text(Index symbol) {
    const ValueRange range = symbol.range();
    auto bound = [](int64_t value) -> std::string {
      if (value == ValueRange::kMin) return "-inf";
      if (value == ValueRange::kMax) return "inf";
      return std::to_string(value);
    };
    return std::string(symbol.symbol_name()) + ": int[" + bound(range.lo) + ", " + bound(range.hi) +
           "]";
  }

  void print_name(const std::string& name) {
    out_ += '%';
    const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
      return std::isalnum(c) || c == '_' || c == '.';
    });
    out_ += plain ? name : quote(name);
  }

  void print_constant(const Node& node) {
    const DType dtype = node.outputs[0].tensor.dtype;
    out_ += "constant(";
    std::optional<std::string> elements;
    if (node.constant_bytes.size() <= kMaxElements * size_of(dtype))
      elements = print_elements(dtype, node.constant_bytes);
    out_ += elements ? *elements : "hex " + quote(print_hex(node.constant_bytes));
    out_ += ")";
  }

  void print_call(const Node& node) {
    out_ += node.schema->full_name() + "(";
    bool by_name = false;
    bool first = true;
    for (size_t i = 0; i < node.arguments.size(); ++i) {
      const SchemaArgument& schema = node.schema->arguments[i];
      if (schema.has_default && schema.default_value == node.arguments[i]) {
        by_name = true;
        continue;
      }
      if (!first) out_ += ", ";
      first = false;
      if (by_name || schema.keyword_only) out_ += schema.name + "=";
      print_argument(node.arguments[i]);
    }
    out_ += ")";
  }

  // Blanks at the ends would be lost in reading.
  void print_stack(const std::string& stack) {
    std::string text;
    append_escaped(text, stack, false);
    if (text.back() == ' ') text.replace(text.size() - 1, 1, "\\x20");
    if (text.front() == ' ') text.replace(0, 1, "\\x20");
    out_ += "  # " + text;
  }

  void print_list(const std::vector<Argument>& list) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (i > 0) out_ += ", ";
      print_argument(list[i]);
    }
  }

  void print_argument(const Argument& argument) {
    std::visit([this](const auto& value) { print(value); }, argument.v);
  }

  void print(std::monostate) { out_ += "none"; }
  void print(const Value& value) { print_value(value); }
  void print(int64_t value) { out_ += std::to_string(value); }
  void print(double value) { out_ += print_double(value); }
  void print(bool value) { out_ += value ? "true" : "false"; }
  void print(const std::complex<double>& value) {
    out_ += "complex(" + print_double(value.real()) + ", " + print_double(value.imag()) + ")";
  }
  void print(Index value) { out_ += to_string(value); }
  void print(const std::string& value) { out_ += quote(value); }
  void print(DType value) { out_ += to_string(value); }
  void print(const DeviceArg& value) { out_ += "device(" + value.value + ")"; }
  void print(MemoryFormatArg value) {
    out_ += "memory_format(" + std::string(memory_format_name(value)) + ")";
  }
  void print(LayoutArg value) { out_ += "layout(" + std::string(layout_name(value)) + ")"; }
  void print(const ArgumentList& list) {
    out_ += '[';
    print_list(list);
    out_ += ']';
  }

  void print_indices(const std::vector<Index>& indices) {
    for (size_t i = 0; i < indices.size(); ++i) {
      if (i > 0) out_ += ", ";
      out_ += to_string(indices[i]);
    }
  }

  const Graph* graph_;
  std::unordered_set<const OpSchema*> checked_;
  std::string out_;
};

}  // namespace

std::string to_string(const Graph& graph) {
  Printer printer(&graph);
  printer.print_graph();
  return printer.take();
}

std::string to_string(const Graph& graph, NodeId id) {
  Printer printer(&graph);
  printer.print_node(id);
  return printer.take();
}

std::string to_string(const Graph& graph, Value value) {
  Printer printer(&graph);
  printer.print_value(value);
  return printer.take();
}

std::string to_string(const TensorMeta& meta) {
  Printer printer(nullptr);
  printer.print_tensor(meta);
  return printer.take();
}

std::string to_string(const ValueMeta& meta) {
  Printer printer(nullptr);
  printer.print_meta(meta);
  return printer.take();
}

}  // namespace litz
