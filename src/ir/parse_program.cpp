#include "ir/parse_program.h"

#include <charconv>
#include <cmath>
#include <unordered_map>

#include "ir/print_program.h"
#include "ir/program_cursor.h"
#include "support/error.h"
#include "support/escape.h"

namespace litz {
namespace {

using SymbolTable = std::unordered_map<std::string, Index>;

class Parser {
 public:
  explicit Parser(std::string_view text)
      : cursor_(text),
        program_(std::make_shared<IndexContext>()),
        indices_(program_.indices()),
        exprs_(program_.exprs()) {}

  Program parse() {
    cursor_.expect_word("program");
    parse_symbols();
    cursor_.expect('{');
    bool returned = false;
    while (!cursor_.accept('}')) {
      if (returned) cursor_.fail("statement after return");
      if (cursor_.accept_word("buffer")) {
        parse_buffer();
      } else if (cursor_.accept_word("inputs")) {
        parse_list('(', ')', [this] { parse_input(); });
      } else if (cursor_.accept_word("return")) {
        parse_list('(', ')', [this] { program_.outputs.push_back(parse_output()); });
        returned = true;
      } else {
        program_.add_operation(parse_operation());
      }
    }
    if (!cursor_.at_end()) cursor_.fail("text after the program");
    return std::move(program_);
  }

 private:
  // ---- pieces ----

  template <class ParseItem>
  void parse_list(char open, char close, ParseItem parse_item) {
    cursor_.expect(open);
    if (cursor_.accept(close)) return;
    do {
      parse_item();
    } while (cursor_.accept(','));
    cursor_.expect(close);
  }

  int64_t parse_bound() {
    if (cursor_.accept_word("inf")) return ValueRange::kMax;
    if (cursor_.peek() == '-') {
      ProgramCursor ahead = cursor_;
      ahead.expect('-');
      if (ahead.accept_word("inf")) {
        cursor_ = ahead;
        return ValueRange::kMin;
      }
    }
    return cursor_.integer();
  }

  void parse_symbols() {
    parse_list('(', ')', [this] {
      const size_t at = cursor_.position();
      const std::string name = cursor_.word();
      cursor_.expect(':');
      cursor_.expect_word("size");
      cursor_.expect('[');
      ValueRange range;
      range.lo = parse_bound();
      cursor_.expect(',');
      range.hi = parse_bound();
      cursor_.expect(']');
      if (range.lo > range.hi) cursor_.fail_at(at, "empty range of " + name);
      if (!symbols_.emplace(name, indices_.size_symbol(name, range)).second) {
        cursor_.fail_at(at, "symbol " + name + " is declared twice");
      }
    });
  }

  // Forgets the loop variables and values of the body before.
  void start_body() {
    values_.clear();
    for (const std::string& name : local_symbols_) symbols_.erase(name);
    local_symbols_.clear();
  }

  void declare_local(size_t at, const std::string& name, Index symbol) {
    if (!symbols_.emplace(name, symbol).second) {
      cursor_.fail_at(at, "symbol " + name + " is declared twice");
    }
    local_symbols_.push_back(name);
  }

  Index parse_index_expression() {
    size_t start = 0;
    const std::string_view text = cursor_.index_text(&start);
    return parse_index_at(text, start);
  }

  Index parse_index_at(std::string_view text, size_t start) {
    try {
      return parse_index(indices_, text, [this](std::string_view name) {
        const auto found = symbols_.find(std::string(name));
        return found == symbols_.end() ? Index() : found->second;
      });
    } catch (const UserError& error) {
      cursor_.fail_at(start, "in \"" + std::string(text) + "\": " + error.what());
    }
  }

  std::vector<Index> parse_indices() {
    std::vector<Index> items;
    parse_list('[', ']', [&] { items.push_back(parse_index_expression()); });
    return items;
  }

  DType parse_type() {
    const size_t at = cursor_.position();
    const std::string word = cursor_.word();
    const auto dtype = parse_dtype(word);
    if (!dtype) cursor_.fail_at(at, "unknown dtype " + word);
    return *dtype;
  }

  BufferId parse_buffer_name() {
    const size_t at = cursor_.position();
    const std::string key = cursor_.key();
    const auto found = buffers_.find(key);
    if (found == buffers_.end()) cursor_.fail_at(at, "unknown buffer " + key);
    return found->second;
  }

  // "as f32[..] strides [..] offset e", or nothing for the whole buffer. After "tensor".
  BufferView parse_view() {
    BufferView view;
    view.buffer = parse_buffer_name();
    if (cursor_.accept_word("as")) {
      view.dtype = parse_type();
      view.sizes = parse_indices();
      cursor_.expect_word("strides");
      view.strides = parse_indices();
      cursor_.expect_word("offset");
      view.offset = parse_index_expression();
      return view;
    }
    const Buffer& buffer = program_.buffer(view.buffer);
    view.dtype = buffer.dtype;
    view.sizes = buffer.sizes;
    view.strides = buffer.strides;
    view.offset = indices_.constant(0);
    return view;
  }

  // ---- declarations ----

  void parse_buffer() {
    Buffer buffer;
    const size_t at = cursor_.position();
    ProgramCursor plain = cursor_;
    const std::string key = cursor_.key();
    buffer.name = plain.name();
    cursor_.expect(':');
    buffer.dtype = parse_type();
    buffer.sizes = parse_indices();
    buffer.strides = cursor_.accept_word("strides") ? parse_indices()
                                                    : contiguous_strides(indices_, buffer.sizes);
    if (cursor_.accept_word("input")) {
      buffer.kind = BufferKind::kInput;
      buffer.number = parse_small("input number");
    } else if (cursor_.accept_word("constant")) {
      buffer.kind = BufferKind::kConstant;
      const size_t at = cursor_.position();
      std::optional<std::vector<std::byte>> bytes = parse_hex(cursor_.raw_quoted());
      if (!bytes) cursor_.fail_at(at, "bytes are not hexadecimal");
      buffer.bytes = std::move(*bytes);
    } else if (cursor_.accept_word("extern")) {
      buffer.kind = BufferKind::kExtern;
    }
    if (!buffers_.emplace(key, program_.add_buffer(std::move(buffer))).second) {
      cursor_.fail_at(at, "buffer " + key + " is declared twice");
    }
  }

  uint32_t parse_small(const char* what) {
    const size_t at = cursor_.position();
    const int64_t value = cursor_.integer();
    if (value < 0 || value > INT32_MAX) cursor_.fail_at(at, std::string(what) + " out of range");
    return static_cast<uint32_t>(value);
  }

  void parse_input() {
    Program::Input input;
    input.name = cursor_.name();
    cursor_.expect('=');
    if (cursor_.accept_word("tensor")) {
      input.buffer = parse_buffer_name();
    } else {
      cursor_.expect_word("int");
      input.integer = parse_index_expression();
    }
    program_.inputs.push_back(std::move(input));
  }

  ProgramOutput parse_output() {
    if (cursor_.accept_word("none")) return {};
    if (cursor_.accept_word("int")) return {parse_index_expression()};
    cursor_.expect_word("tensor");
    return {parse_view()};
  }

  // ---- operations ----

  Operation parse_operation() {
    start_body();
    Operation operation;
    if (cursor_.accept_word("pointwise")) {
      Pointwise item;
      item.output = parse_buffer_name();
      item.loops = parse_loops(0);
      operation.origin = parse_open();
      item.value = parse_body();
      operation.v = std::move(item);
    } else if (cursor_.accept_word("reduction")) {
      Reduction item;
      item.output = parse_buffer_name();
      item.loops = parse_loops(0);
      cursor_.expect_word("over");
      item.reduction = parse_loops(static_cast<uint32_t>(item.loops.extents.size()));
      item.kind = parse_spelling("reduction", parse_reduction_kind);
      item.is_product = cursor_.accept_word("product");
      operation.origin = parse_open();
      item.value = parse_body();
      operation.v = std::move(item);
    } else if (cursor_.accept_word("attention")) {
      Attention item;
      item.output = parse_buffer_name();
      if (cursor_.accept_word("logsumexp")) item.logsumexp = parse_buffer_name();
      item.loops = parse_loops(0);
      cursor_.expect_word("keys");
      auto loops = static_cast<uint32_t>(item.loops.extents.size());
      item.keys = parse_loops(loops);
      cursor_.expect_word("factors");
      loops += static_cast<uint32_t>(item.keys.extents.size());
      item.factors = parse_loops(loops);
      operation.origin = parse_open();
      parse_attention_body(&item);
      operation.v = std::move(item);
    } else if (cursor_.accept_word("scan")) {
      Scan item;
      item.output = parse_buffer_name();
      item.loops = parse_loops(0);
      cursor_.expect_word("axis");
      item.axis = parse_small("axis");
      item.kind = parse_spelling("scan", parse_scan_kind);
      operation.origin = parse_open();
      item.value = parse_body();
      operation.v = std::move(item);
    } else if (cursor_.accept_word("scatter")) {
      Scatter item;
      item.output = parse_buffer_name();
      if (cursor_.accept_word("from")) {
        item.initial_loops = parse_loops(0);
        operation.origin = parse_open();
        item.initial = parse_body();
        cursor_.expect_word("then");
        start_body();
      }
      item.loops = parse_loops(0);
      item.mode = parse_spelling("store mode", parse_store_mode);
      const std::string origin = parse_open();
      if (!item.initial.valid()) operation.origin = origin;
      item.value = parse_scatter_body(&item);
      operation.v = std::move(item);
    } else if (cursor_.accept_word("extern")) {
      ExternKernel item;
      item.name = cursor_.quoted();
      if (cursor_.peek() == '"') item.overload = cursor_.quoted();
      operation.origin = parse_open();
      parse_extern_body(&item);
      operation.v = std::move(item);
    } else {
      cursor_.fail(
          "expected buffer, inputs, pointwise, reduction, attention, scan, scatter, extern, return "
          "or '}'");
    }
    return operation;
  }

  std::string parse_open() {
    cursor_.expect('{');
    return cursor_.line_comment();
  }

  template <class T>
  T parse_spelling(const char* what, std::optional<T> (*parse)(std::string_view)) {
    const size_t at = cursor_.position();
    const std::string word = cursor_.word();
    const auto value = parse(word);
    if (!value) cursor_.fail_at(at, std::string("unknown ") + what + " " + word);
    return *value;
  }

  LoopNest parse_loops(uint32_t first) {
    std::vector<Index> extents;
    std::vector<std::pair<size_t, std::string>> names;
    parse_list('[', ']', [&] {
      const size_t at = cursor_.position();
      names.emplace_back(at, cursor_.word());
      cursor_.expect('<');
      extents.push_back(parse_index_expression());
    });
    LoopNest loops = make_loops(indices_, extents, first);
    for (size_t i = 0; i < names.size(); ++i) {
      const std::string expected = to_string(loops.variables[i]);
      if (names[i].second != expected) {
        cursor_.fail_at(names[i].first, "loop variables are positional: expected " + expected +
                                            ", found " + names[i].second);
      }
      if (loops.variables[i].is_symbol()) {
        declare_local(names[i].first, expected, loops.variables[i]);
      }
    }
    return loops;
  }

  Expr parse_body() {
    while (!cursor_.accept_word("yield")) parse_node();
    const Expr value = parse_operand();
    cursor_.expect('}');
    return value;
  }

  void parse_attention_body(Attention* item) {
    while (!cursor_.accept_word("query")) parse_node();
    item->query = parse_operand();
    cursor_.expect_word("key");
    item->key = parse_operand();
    cursor_.expect_word("score");
    item->score = parse_operand();
    cursor_.expect_word("value");
    item->value = parse_operand();
    cursor_.expect('}');
  }

  Expr parse_scatter_body(Scatter* scatter) {
    while (!cursor_.accept_word("target")) parse_node();
    parse_access(&scatter->target, &scatter->runtime_indices);
    cursor_.expect_word("yield");
    const Expr value = parse_operand();
    cursor_.expect('}');
    return value;
  }

  void parse_extern_body(ExternKernel* kernel) {
    while (!cursor_.accept('}')) {
      if (cursor_.accept_word("schema")) {
        kernel->schema = cursor_.quoted();
      } else if (cursor_.accept_word("node")) {
        kernel->node = cursor_.quoted();
      } else if (cursor_.accept_word("reason")) {
        kernel->reason = cursor_.quoted();
      } else if (cursor_.accept_word("argument")) {
        kernel->arguments.push_back(parse_argument());
      } else if (cursor_.accept_word("result")) {
        if (cursor_.accept_word("none")) {
          kernel->outputs.push_back(BufferId());
        } else {
          cursor_.expect_word("tensor");
          kernel->outputs.push_back(parse_buffer_name());
        }
      } else if (cursor_.accept_word("mutates")) {
        kernel->mutated.push_back(parse_buffer_name());
      } else if (cursor_.accept_word("side_effects")) {
        kernel->has_side_effects = true;
      } else if (cursor_.accept_word("results_are_views")) {
        kernel->results_are_views = true;
      } else if (cursor_.accept_word("results_may_alias")) {
        kernel->results_may_alias = true;
      } else {
        cursor_.fail(
            "expected schema, node, reason, argument, result, results_are_views, "
            "results_may_alias, mutates, "
            "side_effects or '}'");
      }
    }
  }

  ExternArgument parse_argument() {
    if (cursor_.peek() == '[') {
      ExternList list;
      parse_list('[', ']', [&] { list.push_back(parse_argument()); });
      return {std::move(list)};
    }
    const size_t at = cursor_.position();
    const std::string word = cursor_.word();
    if (word == "none") return {};
    if (word == "tensor") return {parse_view()};
    if (word == "int") return {parse_index_expression()};
    if (word == "double") return {cursor_.number()};
    if (word == "bool") {
      const bool value = cursor_.accept_word("true");
      if (!value) cursor_.expect_word("false");
      return {value};
    }
    if (word == "string") return {cursor_.quoted()};
    if (word == "dtype") return {parse_type()};
    if (word == "device") return {ExternDevice{cursor_.quoted()}};
    if (word == "layout") return {ExternLayout{static_cast<int>(parse_small("layout"))}};
    if (word == "memory_format") {
      return {ExternMemoryFormat{static_cast<int>(parse_small("memory format"))}};
    }
    cursor_.fail_at(at, "unknown kind of argument " + word);
  }

  // ---- expressions ----

  // "[coordinates]", then maybe "with (i0 < extent = value, _ = value)". The coordinates are read
  // last, since they use the names in the second part.
  void parse_access(std::vector<Index>* coordinates, std::vector<Expr>* runtime_indices) {
    std::vector<std::pair<size_t, std::string_view>> texts;
    parse_list('[', ']', [&] {
      size_t start = 0;
      const std::string_view text = cursor_.index_text(&start);
      texts.emplace_back(start, text);
    });
    std::vector<std::string> names;
    if (cursor_.accept_word("with")) {
      parse_list('(', ')', [&] {
        const size_t at = cursor_.position();
        const std::string name = cursor_.word();
        const auto number = static_cast<uint32_t>(runtime_indices->size());
        if (name != "_") {
          const std::string expected = "i" + std::to_string(number);
          if (name != expected) {
            cursor_.fail_at(at, "runtime indices are positional: expected " + expected);
          }
          cursor_.expect('<');
          const Index extent = parse_index_expression();
          symbols_[name] = indices_.indirect(number, extent);
          names.push_back(name);
        }
        cursor_.expect('=');
        runtime_indices->push_back(parse_operand());
      });
    }
    for (const auto& [start, text] : texts) coordinates->push_back(parse_index_at(text, start));
    for (const std::string& name : names) symbols_.erase(name);
  }

  void parse_node() {
    const size_t at = cursor_.position();
    const std::string name = cursor_.word();
    cursor_.expect('=');
    const size_t op_at = cursor_.position();
    const std::string spelling = cursor_.word();
    const auto op = parse_expr_op(spelling);
    if (!op) cursor_.fail_at(op_at, "unknown operation " + spelling);
    Expr value;
    try {
      value = parse_node_of(*op, op_at);
    } catch (const InternalError& error) {  // the dtype rules of make()
      cursor_.fail_at(op_at, error.what());
    }
    if (!values_.emplace(name, value).second) {
      cursor_.fail_at(at, "value " + name + " is defined twice");
    }
  }

  Expr parse_node_of(ExprOp op, size_t at) {
    switch (op) {
      case ExprOp::kConstant:
        cursor_.fail_at(at, "constants have no name: write them where they are used");
      case ExprOp::kIndexValue:
        return exprs_.index_value(parse_index_expression());
      case ExprOp::kLoad: {
        const BufferId buffer = parse_buffer_name();
        std::vector<Index> coordinates;
        std::vector<Expr> runtime_indices;
        parse_access(&coordinates, &runtime_indices);
        const DType dtype = cursor_.accept(':') ? parse_type() : program_.buffer(buffer).dtype;
        return exprs_.load(buffer, dtype, std::move(coordinates), std::move(runtime_indices));
      }
      case ExprOp::kReduced: {
        const uint32_t number = parse_small("number of a result");
        cursor_.expect(':');
        return exprs_.reduced(number, parse_type());
      }
      case ExprOp::kCast:
      case ExprOp::kBitcast: {
        const Expr operand = parse_operand();
        cursor_.expect_word("to");
        const DType dtype = parse_type();
        return exprs_.make(op, dtype, {{operand}});
      }
      case ExprOp::kCheckIndex: {
        const Expr operand = parse_operand();
        cursor_.expect('<');
        const Index extent = parse_index_expression();
        if (!cursor_.accept(',')) return exprs_.check_index(operand, extent);
        cursor_.expect_word("runtime_error");
        return exprs_.check_index(operand, extent, IndexFault::kRuntimeError);
      }
      default: {
        std::vector<Expr> operands;
        do {
          operands.push_back(parse_operand());
        } while (cursor_.accept(','));
        return exprs_.make(op, DType::kOther, operands);
      }
    }
  }

  Expr parse_operand() {
    const size_t at = cursor_.position();
    const char c = cursor_.peek();
    const bool numeric = (c >= '0' && c <= '9') || c == '-';
    if (!numeric) {
      ProgramCursor ahead = cursor_;
      const std::string word = ahead.word();
      const bool literal = word == "inf" || word == "nan" || word == "true" || word == "false";
      if (!literal) {
        cursor_ = ahead;
        const auto found = values_.find(word);
        if (found == values_.end()) cursor_.fail_at(at, "unknown value " + word);
        return found->second;
      }
    }
    return exprs_.constant(parse_literal(at));
  }

  // The dtype after the number decides how its digits are read.
  Scalar parse_literal(size_t at) {
    const bool is_true = cursor_.accept_word("true");
    if (is_true || cursor_.accept_word("false")) {
      cursor_.expect(':');
      cursor_.expect_word("bool");
      return Scalar::of_int(DType::kBool, is_true);
    }
    ProgramCursor digits = cursor_;
    cursor_.number();
    cursor_.expect(':');
    const DType dtype = parse_type();
    if (dtype == DType::kFloat64) return Scalar::of_double(dtype, digits.number());
    if (is_floating(dtype)) return Scalar::of_double(dtype, digits.float_number());
    const int64_t value = digits.integer();
    const Scalar scalar = Scalar::of_int(dtype, value);
    if (scalar.integer != value || dtype == DType::kBool || digits.peek() != ':') {
      cursor_.fail_at(at, "not a value of " + std::string(to_string(dtype)));
    }
    return scalar;
  }

  ProgramCursor cursor_;
  Program program_;
  IndexContext& indices_;
  ExprContext& exprs_;
  SymbolTable symbols_;
  std::vector<std::string> local_symbols_;
  std::unordered_map<std::string, BufferId> buffers_;  // by key
  std::unordered_map<std::string, Expr> values_;       // of the body being read
};

}  // namespace

Program parse_program(std::string_view text) { return Parser(text).parse(); }

}  // namespace litz
