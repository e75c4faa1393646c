#include "ir/print_program.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <unordered_map>

#include "support/escape.h"

namespace litz {
namespace {

std::string join(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) {
    if (!text.empty()) text += ", ";
    text += item;
  }
  return text;
}

std::string index_list(std::span<const Index> indices) {
  std::vector<std::string> items;
  for (Index index : indices) items.push_back(to_string(index));
  return "[" + join(items) + "]";
}

// Names that stand without quotes: a letter or "_", then letters, digits, "_" and ".".
bool is_plain_name(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) || name[0] == '.')
    return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
  });
}

std::string name_text(std::string_view name) {
  return is_plain_name(name) ? std::string(name) : quote(name);
}

template <class T>
std::string shortest(T value) {
  if (std::isnan(value)) return std::signbit(value) ? "-nan" : "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  std::string text(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

class Printer {
 public:
  explicit Printer(const Program& program) : program_(program) {
    std::unordered_map<std::string, int> uses;
    for (const Buffer& buffer : program.buffers()) ++uses[buffer.name];
    for (size_t i = 0; i < program.buffers().size(); ++i) {
      const std::string& name = program.buffer(BufferId(static_cast<uint32_t>(i))).name;
      names_.push_back(name_text(name) + (uses[name] > 1 ? "#" + std::to_string(i) : ""));
    }
  }

  std::string print_program(std::span<const OperationId> operations) {
    std::vector<std::string> symbols;
    for (Index symbol : size_symbols(program_)) {
      const ValueRange range = symbol.range();
      symbols.push_back(std::string(symbol.symbol_name()) + ": size[" + bound(range.lo) + ", " +
                        bound(range.hi) + "]");
    }
    line("program(" + join(symbols) + ") {");
    ++depth_;
    for (size_t i = 0; i < names_.size(); ++i) print_buffer(BufferId(static_cast<uint32_t>(i)));
    std::vector<std::string> inputs;
    for (const Program::Input& input : program_.inputs) {
      inputs.push_back(name_text(input.name) + " = " +
                       (input.buffer.valid() ? "tensor " + name(input.buffer)
                                             : "int " + to_string(input.integer)));
    }
    line("inputs (" + join(inputs) + ")");
    for (OperationId id : operations) {
      text_ += "\n";
      print_operation(program_.operations()[id]);
    }
    text_ += "\n";
    std::vector<std::string> outputs;
    for (const ProgramOutput& output : program_.outputs) {
      if (const auto* view = std::get_if<BufferView>(&output.v)) {
        outputs.push_back(view_text(*view));
      } else if (const auto* index = std::get_if<Index>(&output.v)) {
        outputs.push_back("int " + to_string(*index));
      } else {
        outputs.push_back("none");
      }
    }
    line("return (" + join(outputs) + ")");
    --depth_;
    line("}");
    return std::move(text_);
  }

  std::string take() { return std::move(text_); }

  void print_operation(const Operation& operation) {
    std::visit([&](const auto& item) { line(header(item) + " {" + origin_text(operation)); },
               operation.v);
    ++depth_;
    std::visit([&](const auto& item) { print_body(item); }, operation.v);
    --depth_;
    line("}");
  }

  void print_yield(Expr value) {
    print_nodes(value);
    line("yield " + operand(value));
  }

 private:
  static std::string bound(int64_t value) {
    if (value == ValueRange::kMax) return "inf";
    if (value == ValueRange::kMin) return "-inf";
    return std::to_string(value);
  }

  static std::string origin_text(const Operation& operation) {
    if (operation.origin.empty()) return "";
    std::string text = "  # ";
    append_escaped(text, operation.origin, false);
    return text;
  }

  void line(const std::string& text) {
    text_.append(2 * depth_, ' ');
    text_ += text;
    text_ += '\n';
  }

  std::string name(BufferId id) const {
    return program_.buffers().contains(id) ? names_[id.value] : "?";
  }

  void print_buffer(BufferId id) {
    const Buffer& buffer = program_.buffer(id);
    std::string text = "buffer " + name(id) + ": " + std::string(to_string(buffer.dtype)) +
                       index_list(buffer.sizes);
    if (buffer.strides != contiguous_strides(program_.indices(), buffer.sizes)) {
      text += " strides " + index_list(buffer.strides);
    }
    switch (buffer.kind) {
      case BufferKind::kInput:
        text += " input " + std::to_string(buffer.number);
        break;
      case BufferKind::kConstant:
        text += " constant \"" + print_hex(buffer.bytes) + "\"";
        break;
      case BufferKind::kComputed:
        break;
      case BufferKind::kExtern:
        text += " extern";
        break;
    }
    line(text);
  }

  std::string view_text(const BufferView& view) const {
    std::string text = "tensor " + name(view.buffer);
    if (is_whole_buffer(program_, view)) return text;
    return text + " as " + std::string(to_string(view.dtype)) + index_list(view.sizes) +
           " strides " + index_list(view.strides) + " offset " + to_string(view.offset);
  }

  static std::string loops_text(const LoopNest& loops) {
    std::vector<std::string> items;
    for (size_t i = 0; i < loops.extents.size(); ++i) {
      items.push_back(to_string(loops.variables[i]) + " < " + to_string(loops.extents[i]));
    }
    return "[" + join(items) + "]";
  }

  // ---- headers ----

  std::string header(const Pointwise& item) const {
    return "pointwise " + name(item.output) + loops_text(item.loops);
  }
  std::string header(const Reduction& item) const {
    return "reduction " + name(item.output) + loops_text(item.loops) + " over " +
           loops_text(item.reduction) + " " + std::string(to_string(item.kind)) +
           (item.is_product ? " product" : "");
  }
  std::string header(const Attention& item) const {
    return "attention " + name(item.output) +
           (item.logsumexp.valid() ? " logsumexp " + name(item.logsumexp) + " " : "") +
           loops_text(item.loops) + " keys " + loops_text(item.keys) + " factors " +
           loops_text(item.factors);
  }
  std::string header(const Scan& item) const {
    return "scan " + name(item.output) + loops_text(item.loops) + " axis " +
           std::to_string(item.axis) + " " + std::string(to_string(item.kind));
  }
  std::string header(const Scatter& item) const {
    const std::string text = "scatter " + name(item.output);
    return item.initial.valid() ? text + " from " + loops_text(item.initial_loops)
                                : text + scatter_loops(item);
  }
  static std::string scatter_loops(const Scatter& item) {
    return loops_text(item.loops) + " " + std::string(to_string(item.mode));
  }
  std::string header(const ExternKernel& item) const {
    return "extern " + quote(item.name) + (item.overload.empty() ? "" : " " + quote(item.overload));
  }

  // ---- bodies ----

  template <class LoopOperation>
  void print_body(const LoopOperation& item) {
    values_.clear();
    print_yield(item.value);
  }

  void print_body(const Attention& item) {
    values_.clear();
    for (Expr root : {item.query, item.key, item.score, item.value}) print_nodes(root);
    line("query " + operand(item.query) + " key " + operand(item.key) + " score " +
         operand(item.score) + " value " + operand(item.value));
  }

  void print_body(const Scatter& item) {
    values_.clear();
    if (item.initial.valid()) {
      print_yield(item.initial);
      values_.clear();
      --depth_;
      line("} then " + scatter_loops(item) + " {");
      ++depth_;
    }
    for (Expr index : item.runtime_indices) print_nodes(index);
    print_nodes(item.value);
    line("target " + index_list(item.target) + runtime_text(item.target, item.runtime_indices));
    line("yield " + operand(item.value));
  }

  void print_body(const ExternKernel& item) {
    if (!item.schema.empty()) line("schema " + quote(item.schema));
    if (!item.node.empty()) line("node " + quote(item.node));
    if (!item.reason.empty()) line("reason " + quote(item.reason));
    for (const ExternArgument& argument : item.arguments) {
      line("argument " + argument_text(argument));
    }
    for (BufferId output : item.outputs) {
      line(output.valid() ? "result tensor " + name(output) : "result none");
    }
    if (item.results_are_views) line("results_are_views");
    if (item.results_may_alias) line("results_may_alias");
    for (BufferId buffer : item.mutated) line("mutates " + name(buffer));
    if (item.has_side_effects) line("side_effects");
  }

  std::string argument_text(const ExternArgument& argument) const {
    struct Visitor {
      const Printer& printer;
      std::string operator()(std::monostate) const { return "none"; }
      std::string operator()(const BufferView& view) const { return printer.view_text(view); }
      std::string operator()(Index index) const { return "int " + to_string(index); }
      std::string operator()(double value) const { return "double " + shortest(value); }
      std::string operator()(bool value) const { return value ? "bool true" : "bool false"; }
      std::string operator()(const std::string& text) const { return "string " + quote(text); }
      std::string operator()(DType dtype) const { return "dtype " + std::string(to_string(dtype)); }
      std::string operator()(const ExternDevice& device) const {
        return "device " + quote(device.value);
      }
      std::string operator()(ExternLayout layout) const {
        return "layout " + std::to_string(layout.value);
      }
      std::string operator()(ExternMemoryFormat format) const {
        return "memory_format " + std::to_string(format.value);
      }
      std::string operator()(const ExternList& list) const {
        std::vector<std::string> items;
        for (const ExternArgument& item : list) items.push_back(printer.argument_text(item));
        return "[" + join(items) + "]";
      }
    };
    return std::visit(Visitor{*this}, argument.v);
  }

  // ---- expressions ----

  std::string operand(Expr expr) const {
    if (expr.op() == ExprOp::kConstant) return to_string(expr.scalar());
    return "t" + std::to_string(values_.at(expr));
  }

  // " with (i0 < 50 = t3, _ = t4)", or nothing where there are no runtime indices.
  std::string runtime_text(std::span<const Index> coordinates,
                           std::span<const Expr> runtime_indices) const {
    if (runtime_indices.empty()) return "";
    std::vector<std::string> targets(runtime_indices.size(), "_");
    for (Index symbol : free_symbols(coordinates)) {
      if (symbol.symbol_kind() != SymbolKind::kIndirect) continue;
      if (symbol.symbol_number() >= targets.size()) continue;
      targets[symbol.symbol_number()] = to_string(symbol) + " < " + to_string(symbol.extent());
    }
    for (size_t i = 0; i < targets.size(); ++i) targets[i] += " = " + operand(runtime_indices[i]);
    return " with (" + join(targets) + ")";
  }

  void print_nodes(Expr root) {
    visit_postorder({&root, 1}, [this](Expr expr) {
      if (expr.op() == ExprOp::kConstant || values_.contains(expr)) return;
      const size_t number = values_.size();
      const std::string text = node_text(expr);
      values_.emplace(expr, number);
      line("t" + std::to_string(number) + " = " + text);
    });
  }

  std::string node_text(Expr expr) const {
    std::string text(to_string(expr.op()));
    switch (expr.op()) {
      case ExprOp::kIndexValue:
        return text + " " + to_string(expr.index());
      case ExprOp::kLoad: {
        text += " " + name(expr.buffer()) + index_list(expr.coordinates()) +
                runtime_text(expr.coordinates(), expr.operands());
        const bool known = program_.buffers().contains(expr.buffer());
        if (known && program_.buffer(expr.buffer()).dtype == expr.dtype()) return text;
        return text + ": " + std::string(to_string(expr.dtype()));
      }
      case ExprOp::kReduced:
        return text + " " + std::to_string(expr.number()) + ": " +
               std::string(to_string(expr.dtype()));
      case ExprOp::kCast:
      case ExprOp::kBitcast:
        return text + " " + operand(expr.operand(0)) + " to " +
               std::string(to_string(expr.dtype()));
      case ExprOp::kCheckIndex:
        return text + " " + operand(expr.operand(0)) + " < " + to_string(expr.index()) +
               (expr.fault() == IndexFault::kRuntimeError ? ", runtime_error" : "");
      default: {
        std::vector<std::string> items;
        for (Expr item : expr.operands()) items.push_back(operand(item));
        return text + " " + join(items);
      }
    }
  }

  const Program& program_;
  std::vector<std::string> names_;
  std::unordered_map<Expr, size_t> values_;  // of the body being printed
  std::string text_;
  size_t depth_ = 0;
};

}  // namespace

std::string to_string(const Scalar& scalar) {
  std::string text;
  if (scalar.dtype == DType::kBool) {
    text = scalar.integer != 0 ? "true" : "false";
  } else if (scalar.dtype == DType::kFloat64) {
    text = shortest(scalar.real);
  } else if (is_floating(scalar.dtype)) {
    text = shortest(static_cast<float>(scalar.real));
  } else {
    text = std::to_string(scalar.integer);
  }
  return text + ": " + std::string(to_string(scalar.dtype));
}

std::string to_string(const Program& program) {
  std::vector<OperationId> all;
  for (uint32_t i = 0; i < program.operations().size(); ++i) all.emplace_back(i);
  return to_string(program, all);
}

std::string to_string(const Program& program, std::span<const OperationId> operations) {
  return Printer(program).print_program(operations);
}

std::string to_string(const Program& program, const Operation& operation) {
  Printer printer(program);
  printer.print_operation(operation);
  return printer.take();
}

std::string to_string(const Program& program, Expr expression) {
  Printer printer(program);
  printer.print_yield(expression);
  return printer.take();
}

}  // namespace litz
