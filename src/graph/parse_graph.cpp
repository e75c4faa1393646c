#include "graph/parse_graph.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "graph/bind_arguments.h"
#include "graph/number_text.h"
#include "graph/text_cursor.h"
#include "support/error.h"
#include "support/escape.h"

namespace litz {
namespace {

std::optional<int64_t> parse_integer(std::string_view text) {
  int64_t value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last || text.empty()) return std::nullopt;
  return value;
}

// "f(x)" with this f: x.
std::optional<std::string_view> inside(std::string_view text, std::string_view function) {
  if (!text.starts_with(function) || !text.ends_with(")")) return std::nullopt;
  text.remove_prefix(function.size());
  if (!text.starts_with("(")) return std::nullopt;
  return text.substr(1, text.size() - 2);
}

// A word that reads as an argument of its own cannot name a symbol.
bool is_reserved(std::string_view word) {
  const std::optional<DType> dtype = parse_dtype(word);
  return word == "none" || word == "true" || word == "false" || word == "min" || word == "max" ||
         word == "mod" || word == "floor_div" || word == "frozen" || parse_double(word) ||
         (dtype && to_string(*dtype) == word);
}

class GraphParser {
 public:
  explicit GraphParser(std::string_view text) : text_(text) {}

  Graph parse() {
    while (text_.accept_word("schema")) {
      const size_t start = text_.skip_blanks();
      declare(text_.rest_of_line(), start);
    }
    if (!text_.accept_word("graph")) text_.fail("expected 'graph' or 'schema'");
    text_.expect("(");
    if (!text_.accept(")")) {
      do {
        item();
      } while (text_.accept(","));
      text_.expect(")");
    }
    text_.expect("{");
    while (!text_.accept_word("return")) node();
    text_.expect("(");
    Call outputs = arguments(false);
    if (text_.accept_word("free_layout")) graph_.set_free_layouts(positions());
    text_.expect("}");
    if (!text_.at_end()) text_.fail("expected the end of the text");
    graph_.set_outputs(std::move(outputs.positional));
    return std::move(graph_);
  }

 private:
  struct Call {
    std::vector<Argument> positional;
    std::vector<std::pair<std::string, Argument>> keywords;
  };

  void declare(std::string_view schema, size_t start) {
    try {
      graph_.schemas().declare(schema);
    } catch (const UserError& error) {
      text_.fail_at(start, error.what());
    }
  }

  // A size symbol or an input.
  void item() {
    const bool is_frozen = text_.accept_word("frozen");
    if (is_frozen || text_.at("%")) {
      const size_t start = text_.skip_blanks();
      std::string name = define_name();
      text_.expect(":");
      ValueMeta result = meta();
      add(start, name, graph_.add_input(name, std::move(result), is_frozen));
      return;
    }
    const size_t start = text_.skip_blanks();
    const std::string_view name = text_.word("'%', a symbol or ')'");
    text_.expect(":");
    if (!text_.accept_word("int")) text_.fail("expected 'int'");
    text_.expect("[");
    ValueRange range;
    range.lo = bound();
    text_.expect(",");
    range.hi = bound();
    text_.expect("]");
    if (is_reserved(name)) text_.fail_at(start, "'" + std::string(name) + "' cannot name a symbol");
    if (!symbols_.emplace(name, graph_.context().size_symbol(name, range)).second)
      text_.fail_at(start, "symbol '" + std::string(name) + "' is declared twice");
  }

  int64_t bound() {
    const size_t start = text_.skip_blanks();
    const std::string_view text = text_.until_delimiter();
    if (text == "inf") return ValueRange::kMax;
    if (text == "-inf") return ValueRange::kMin;
    if (std::optional<int64_t> value = parse_integer(text)) return *value;
    text_.fail_at(start, "expected an integer, 'inf' or '-inf'");
  }

  void node() {
    const size_t start = text_.skip_blanks();
    if (!text_.at("%")) text_.fail("expected '%' or 'return'");
    const std::string name = define_name();
    std::vector<ValueMeta> outputs;
    if (!text_.at("=")) results(name, outputs);
    text_.expect("=");
    const size_t op_start = text_.skip_blanks();
    const std::string_view op = text_.until("(");
    text_.expect("(");
    if (op == "constant") {
      if (outputs.size() != 1 || !outputs[0].is_tensor())
        text_.fail_at(start, "a constant has one result, a tensor");
      std::vector<std::byte> bytes = elements(outputs[0].tensor.dtype);
      add(start, name, graph_.add_constant(name, std::move(outputs[0].tensor), std::move(bytes)));
      return;
    }
    const OpSchema* schema = graph_.schemas().find(op);
    if (schema == nullptr)
      text_.fail_at(op_start, "unknown op '" + std::string(op) +
                                  "'; one outside torch's own needs a 'schema' line");
    std::vector<Argument> bound = bind(*schema, arguments(true), op_start);
    std::string stack;
    if (text_.accept_on_line("#")) {
      const size_t stack_start = text_.skip_blanks_on_line();
      if (!append_unescaped(stack, text_.rest_of_line()))
        text_.fail_at(stack_start, "malformed escape sequence");
    }
    add(start, name,
        graph_.add_call(name, *schema, std::move(bound), std::move(outputs), std::move(stack)));
  }

  // ": meta" or ":0: meta, %name:1: meta, ...", after the first name.
  void results(const std::string& name, std::vector<ValueMeta>& outputs) {
    if (!text_.at_result_number()) {
      text_.expect(":");
      outputs.push_back(meta());
      return;
    }
    for (;;) {
      const size_t start = text_.skip_blanks();
      if (result_number() != outputs.size())
        text_.fail_at(start, "expected ':" + std::to_string(outputs.size()) + "'");
      text_.expect(":");
      outputs.push_back(meta());
      if (!text_.accept(",")) return;
      const size_t name_start = text_.skip_blanks();
      if (define_name() != name)
        text_.fail_at(name_start, "expected another result of '" + name + "'");
      if (!text_.at_result_number()) text_.fail("expected ':' and the number of a result");
    }
  }

  void add(size_t start, const std::string& name, NodeId id) {
    if (!nodes_.emplace(name, id).second) text_.fail_at(start, "'%" + name + "' is defined twice");
  }

  std::vector<Argument> bind(const OpSchema& schema, Call call, size_t start) {
    try {
      return bind_arguments(schema, std::move(call.positional), std::move(call.keywords));
    } catch (const UserError& error) {
      text_.fail_at(start, error.what());
    }
  }

  std::string define_name() {
    text_.expect("%");
    if (text_.at_here("\"")) return text_.quoted();
    return std::string(text_.word("a name"));
  }

  uint32_t result_number() {
    text_.expect(":");
    return number("the number of a result");
  }

  uint32_t number(const char* what) {
    const size_t start = text_.skip_blanks();
    const std::optional<int64_t> number = parse_integer(text_.digits());
    if (!number || *number > UINT32_MAX) text_.fail_at(start, std::string("expected ") + what);
    return static_cast<uint32_t>(*number);
  }

  std::vector<uint32_t> positions() {
    std::vector<uint32_t> list;
    text_.expect("(");
    do {
      list.push_back(number("the position of an output"));
    } while (text_.accept(","));
    text_.expect(")");
    return list;
  }

  Value value() {
    const size_t start = text_.skip_blanks();
    const std::string name = define_name();
    const auto node = nodes_.find(name);
    if (node == nodes_.end()) text_.fail_at(start, "'%" + name + "' is not defined above");
    Value result{node->second, text_.at_result_number() ? result_number() : 0};
    if (!graph_.contains(result))
      text_.fail_at(start, "'%" + name + "' has no result " + std::to_string(result.output));
    return result;
  }

  ValueMeta meta() {
    const size_t start = text_.skip_blanks();
    const std::string_view word = text_.word("a dtype, 'int', 'scalar' or 'none'");
    if (word == "none") return {};
    if (word == "scalar") return ValueMeta::other_scalar();
    if (word == "int") {
      text_.expect("(");
      const Index integer = index();
      text_.expect(")");
      return ValueMeta::of(integer);
    }
    const std::optional<DType> dtype = parse_dtype(word);
    if (!dtype) text_.fail_at(start, "expected a dtype, 'int', 'scalar' or 'none'");
    TensorMeta tensor;
    tensor.dtype = *dtype;
    tensor.sizes = indices("[", "]");
    tensor.strides =
        text_.at("{") ? indices("{", "}") : contiguous_strides(graph_.context(), tensor.sizes);
    tensor.offset = graph_.context().constant(0);
    if (text_.accept("offset(")) {
      tensor.offset = index();
      text_.expect(")");
    }
    if (text_.accept("device(")) {
      tensor.device = text_.until(")");
      text_.expect(")");
    }
    if (text_.accept("layout(other)")) tensor.layout = TensorLayout::kOther;
    return ValueMeta::of(std::move(tensor));
  }

  std::vector<Index> indices(std::string_view open, std::string_view close) {
    std::vector<Index> result;
    text_.expect(open);
    if (text_.accept(close)) return result;
    do {
      result.push_back(index());
    } while (text_.accept(","));
    text_.expect(close);
    return result;
  }

  Index index() {
    const size_t start = text_.skip_blanks();
    return index(text_.until_delimiter(), start);
  }

  Index index(std::string_view text, size_t start) {
    auto [known, is_new] = indices_.try_emplace(text);
    if (!is_new) return known->second;
    auto symbol_of = [this](std::string_view name) {
      const auto symbol = symbols_.find(name);
      return symbol == symbols_.end() ? Index() : symbol->second;
    };
    try {
      return known->second = parse_index(graph_.context(), text, symbol_of);
    } catch (const UserError& error) {
      text_.fail_at(start, error.what());
    }
  }

  // After "(", up to and with ")".
  Call arguments(bool allow_keywords) {
    Call call;
    if (text_.accept(")")) return call;
    do {
      const size_t start = text_.skip_blanks();
      const std::string_view keyword = text_.accept_keyword();
      if (!keyword.empty()) {
        if (!allow_keywords) text_.fail_at(start, "expected an argument without name");
        call.keywords.emplace_back(keyword, argument());
      } else {
        if (!call.keywords.empty()) text_.fail_at(start, "expected an argument with name");
        call.positional.push_back(argument());
      }
    } while (text_.accept(","));
    text_.expect(")");
    return call;
  }

  Argument argument() {
    if (text_.at("%")) return value();
    if (text_.at("\"")) return text_.quoted();
    if (text_.accept("[")) {
      ArgumentList list;
      if (text_.accept("]")) return list;
      do {
        list.push_back(argument());
      } while (text_.accept(","));
      text_.expect("]");
      return list;
    }
    const size_t start = text_.skip_blanks();
    const std::string_view text = text_.until_delimiter();
    if (text == "none") return {};
    if (text == "true") return true;
    if (text == "false") return false;
    if (std::optional<int64_t> integer = parse_integer(text)) return *integer;
    if (std::optional<double> real = parse_double(text)) return *real;
    if (std::optional<DType> dtype = parse_dtype(text)) return *dtype;
    if (auto device = inside(text, "device")) return DeviceArg{std::string(*device)};
    if (auto numbers = inside(text, "complex")) return complex(*numbers, start);
    if (auto name = inside(text, "memory_format")) {
      if (std::optional<MemoryFormatArg> format = parse_memory_format(*name)) return *format;
      text_.fail_at(start, "unknown memory format");
    }
    if (auto name = inside(text, "layout")) {
      if (std::optional<LayoutArg> layout = parse_layout(*name)) return *layout;
      text_.fail_at(start, "unknown layout");
    }
    return index(text, start);
  }

  std::complex<double> complex(std::string_view numbers, size_t start) {
    const size_t comma = numbers.find(", ");
    if (comma != std::string_view::npos) {
      const std::optional<double> real = parse_double(numbers.substr(0, comma));
      const std::optional<double> imaginary = parse_double(numbers.substr(comma + 2));
      if (real && imaginary) return {*real, *imaginary};
    }
    text_.fail_at(start, "expected complex(real, imaginary)");
  }

  // The content of a constant, up to and with ")".
  std::vector<std::byte> elements(DType dtype) {
    std::vector<std::byte> bytes;
    if (text_.accept(")")) return bytes;
    if (text_.accept_word("hex")) {
      const size_t start = text_.skip_blanks();
      std::optional<std::vector<std::byte>> parsed = parse_hex(text_.quoted());
      if (!parsed) text_.fail_at(start, "expected an even number of hexadecimal digits");
      text_.expect(")");
      return *std::move(parsed);
    }
    do {
      const size_t start = text_.skip_blanks();
      if (!parse_element(dtype, text_.until_delimiter(), bytes))
        text_.fail_at(start, "expected an element of dtype " + std::string(to_string(dtype)));
    } while (text_.accept(","));
    text_.expect(")");
    return bytes;
  }

  TextCursor text_;
  Graph graph_;
  std::unordered_map<std::string_view, Index> symbols_;
  std::unordered_map<std::string_view, Index> indices_;
  std::unordered_map<std::string, NodeId> nodes_;
};

}  // namespace

Graph parse_graph(std::string_view text) { return GraphParser(text).parse(); }

}  // namespace litz
