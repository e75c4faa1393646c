// The invariants of a Program.
//
// Buffers
//   P1   A name is not empty.
//   P2   The dtype of a computed buffer is native; what is not can be an input, a constant or a
//        library result, which other library ops and the caller use.
//   P3   There is one stride for each size; sizes and strides depend on size symbols only.
//   P4   A constant has static sizes and strides and as many bytes as they span.
//   P5   Input buffers and Program::inputs name each other: input k is buffer number k or an int.
// Operations
//   P6   Every buffer id names a buffer.
//   P7   Loop variables are positional: variable i of extent e is IndexContext::variable(i, e), the
//        constant 0 for extent 1; reduction loops continue the count. Extents depend on size
//        symbols only.
//   P8   Indices use size symbols and the operation's own loop variables only, coordinates also the
//        runtime indices i0, i1, ... that the load or scatter has operands for.
//   P9   A load has one coordinate for each dimension of its buffer, and the buffer's dtype.
//   P10  A coordinate is not provably outside its dimension, except under kMasked; a runtime index
//        stands for a value below the size of the dimension where it is a coordinate by itself.
//   P11  kReduced does not occur, except that kReduced(0), a float32, is the product in an
//        Attention's score.
//   P12  A buffer is written by one operation: computed buffers by a loop operation, library
//   results
//        by an ExternKernel. A Pointwise or Scatter may also write an input; constants are never
//        written.
//   P13  A buffer is written before it is read; after a Pointwise or Scatter has written an input
//   no
//        operation reads it.
//   P14  A Pointwise that writes an input, and the initial value of a Scatter that does, load that
//        input at the element they write, or not at all.
//   P15  The output's sizes are the extents (for a Reduction those of its outer loops), and its
//   dtype
//        is the value's (for argmax and argmin int64).
//   P16  Reductions and scans fit their dtype: sum and prod take numbers, any and all bools, none
//        float16 or bfloat16; a scan's axis is one of its loops.
//   P17  A scatter has an initial value for each element of its output, or the output is an input;
//   it
//        has a target for each dimension and int64 runtime indices, and does not load its output;
//        bools are stored, min or max.
//   P21  An Attention has at least the loops of its query and feature, and one of keys and one of
//        factors, none but the query's of one iteration. Query, key and value are loads of float32
//        or half floats, of one dtype, at positions known from the loops; the score and the output
//        are float32. The query depends on no feature or key, the key on no query or feature, the
//        value on no query or factor, the score on no feature or factor.
// Library ops and outputs
//   P18  A view has one stride for each size, a dtype, an offset, and depends on size symbols only.
//   P19  Buffers that a library op mutates are among those it reads.
//   P20  An output is a view of a buffer that is written, an int of size symbols, or none.
#include "ir/verify_program.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <unordered_set>

#include "ir/print_program.h"
#include "support/error.h"

namespace litz {
namespace {

bool only_size_symbols(Index index) {
  for (Index symbol : free_symbols(index)) {
    if (symbol.symbol_kind() != SymbolKind::kSize) return false;
  }
  return true;
}

class Verifier {
 public:
  explicit Verifier(const Program& program)
      : program_(program),
        written_(program.buffers().size(), false),
        overwritten_(program.buffers().size(), false) {}

  std::vector<std::string> run() {
    for (uint32_t i = 0; i < program_.buffers().size(); ++i) check_buffer(BufferId(i));
    check_inputs();
    for (const Operation& operation : program_.operations()) check_operation(operation);
    where_ = "outputs";
    for (const ProgramOutput& output : program_.outputs) check_output(output);
    return std::move(faults_);
  }

 private:
  void fault(int number, const std::string& message) {
    faults_.push_back("P" + std::to_string(number) + ": " + where_ + ": " + message);
  }
  void require(bool condition, int number, const std::string& message) {
    if (!condition) fault(number, message);
  }

  const std::string& name(BufferId id) const { return program_.buffer(id).name; }

  bool known(BufferId id) {
    const bool is_known = program_.buffers().contains(id);
    require(is_known, 6, "buffer " + std::to_string(id.value) + " does not exist");
    return is_known;
  }

  void require_sizes(std::span<const Index> indices, int number, const std::string& what) {
    for (Index index : indices) {
      if (!index.valid()) {
        fault(number, what + " is null");
      } else {
        require(only_size_symbols(index), number,
                what + " " + to_string(index) + " depends on more than size symbols");
      }
    }
  }

  // ---- buffers ----

  void check_buffer(BufferId id) {
    const Buffer& buffer = program_.buffer(id);
    where_ = "buffer " + (buffer.name.empty() ? std::to_string(id.value) : buffer.name);
    require(!buffer.name.empty(), 1, "no name");
    require(is_native(buffer.dtype) || buffer.kind != BufferKind::kComputed, 2,
            "computed buffer of " + std::string(to_string(buffer.dtype)));
    require(buffer.sizes.size() == buffer.strides.size(), 3,
            std::to_string(buffer.sizes.size()) + " sizes, " +
                std::to_string(buffer.strides.size()) + " strides");
    require_sizes(buffer.sizes, 3, "size");
    require_sizes(buffer.strides, 3, "stride");
    if (buffer.kind == BufferKind::kConstant) check_constant(buffer);
    if (buffer.kind == BufferKind::kInput) {
      const bool listed =
          buffer.number < program_.inputs.size() && program_.inputs[buffer.number].buffer == id;
      require(listed, 5, "input " + std::to_string(buffer.number) + " is not this buffer");
    }
    if (buffer.kind == BufferKind::kInput || buffer.kind == BufferKind::kConstant) {
      written_[id.value] = true;
    }
  }

  void check_constant(const Buffer& buffer) {
    if (buffer.sizes.size() != buffer.strides.size()) return;  // P3
    int64_t span = 1;
    for (size_t d = 0; d < buffer.sizes.size(); ++d) {
      if (!buffer.sizes[d].valid() || !buffer.strides[d].valid()) return;  // P3
      const auto size = buffer.sizes[d].as_constant();
      const auto stride = buffer.strides[d].as_constant();
      if (!size || !stride) {
        fault(4, "sizes and strides of a constant are not static");
        return;
      }
      if (*size == 0) span = 0;
      if (span > 0) span += (*size - 1) * *stride;
    }
    const auto expected = static_cast<size_t>(span * size_of(buffer.dtype));
    require(buffer.bytes.size() == expected, 4,
            std::to_string(buffer.bytes.size()) + " bytes, expected " + std::to_string(expected));
  }

  void check_inputs() {
    for (uint32_t k = 0; k < program_.inputs.size(); ++k) {
      const Program::Input& input = program_.inputs[k];
      where_ = "input " + std::to_string(k);
      if (input.buffer.valid()) {
        if (!known(input.buffer)) continue;
        const Buffer& buffer = program_.buffer(input.buffer);
        require(buffer.kind == BufferKind::kInput && buffer.number == k, 5,
                "buffer " + buffer.name + " is not input " + std::to_string(k));
      } else {
        require_sizes({&input.integer, 1}, 5, "int");
      }
    }
  }

  // ---- loops and indices ----

  void start_scope() {
    scope_.clear();
    num_loops_ = 0;
  }

  // Checks the nest and adds its variables to those in scope.
  void check_loops(const LoopNest& loops) {
    require(loops.extents.size() == loops.variables.size(), 7,
            std::to_string(loops.extents.size()) + " extents, " +
                std::to_string(loops.variables.size()) + " variables");
    require_sizes(loops.extents, 7, "extent");
    const size_t count = std::min(loops.extents.size(), loops.variables.size());
    for (size_t i = 0; i < count; ++i, ++num_loops_) {
      const Index variable = loops.variables[i];
      const Index extent = loops.extents[i];
      if (!extent.valid()) continue;  // reported above
      const bool positional =
          variable.valid() &&
          (extent.is_constant(1)
               ? variable.is_constant(0)
               : variable.is_symbol() && variable.symbol_kind() == SymbolKind::kVariable &&
                     variable.symbol_number() == num_loops_ && variable.extent() == extent);
      require(positional, 7,
              "variable " + std::to_string(num_loops_) + " of extent " + to_string(extent) +
                  " is " + to_string(variable));
      if (variable.valid() && variable.is_symbol()) scope_.insert(variable);
    }
  }

  // `num_runtime` is how many of i0, i1, ... have operands.
  void check_scope(Index index, size_t num_runtime) {
    if (!index.valid()) {
      fault(8, "null index");
      return;
    }
    for (Index symbol : free_symbols(index)) {
      switch (symbol.symbol_kind()) {
        case SymbolKind::kSize:
          break;
        case SymbolKind::kVariable:
          require(scope_.contains(symbol), 8,
                  to_string(symbol) + " in " + to_string(index) +
                      " is no loop variable of the operation");
          break;
        case SymbolKind::kIndirect:
          require(symbol.symbol_number() < num_runtime, 8,
                  to_string(symbol) + " in " + to_string(index) + " has no operand");
          break;
      }
    }
  }

  void check_coordinates(BufferId id, std::span<const Index> coordinates, size_t num_runtime,
                         bool masked) {
    for (Index coordinate : coordinates) check_scope(coordinate, num_runtime);
    const Buffer& buffer = program_.buffer(id);
    if (coordinates.size() != buffer.sizes.size()) {
      fault(9, std::to_string(coordinates.size()) + " coordinates for buffer " + buffer.name +
                   " of " + std::to_string(buffer.sizes.size()) + " dimensions");
      return;
    }
    if (masked) return;
    for (size_t d = 0; d < coordinates.size(); ++d) {
      const Index at = coordinates[d];
      const Index size = buffer.sizes[d];
      if (!at.valid() || !size.valid()) continue;
      const auto describe = [&] {
        return "coordinate " + to_string(at) + " in dimension " + std::to_string(d) +
               " of buffer " + buffer.name + ", which has size " + to_string(size);
      };
      const bool outside = prove_less(at, program_.indices().constant(0)) ||
                           (prove_less_equal(size, at) && !is_empty_loop(at));
      require(!outside, 10, describe() + ", is out of range");
      if (at.is_symbol() && at.symbol_kind() == SymbolKind::kIndirect) {
        require(at.extent() == size || prove_less_equal(at.extent(), size), 10,
                describe() + ", stands for values below " + to_string(at.extent()));
      }
    }
  }

  // A loop that never runs reads nothing, whatever its coordinates say.
  bool is_empty_loop(Index coordinate) const {
    for (Index symbol : free_symbols(coordinate)) {
      if (symbol.symbol_kind() == SymbolKind::kSize) continue;
      if (symbol.extent().is_constant(0)) return true;
    }
    return false;
  }

  // ---- expressions ----

  // Nodes that are only evaluated where some kMasked condition holds.
  static std::unordered_set<Expr> find_masked(std::span<const Expr> roots) {
    std::unordered_set<Expr> always;
    std::vector<Expr> stack(roots.begin(), roots.end());
    while (!stack.empty()) {
      const Expr expr = stack.back();
      stack.pop_back();
      if (!always.insert(expr).second) continue;
      for (size_t i = 0; i < expr.operands().size(); ++i) {
        const bool lazy = expr.op() == ExprOp::kMasked && i == 1;
        if (!lazy) stack.push_back(expr.operand(i));
      }
    }
    std::unordered_set<Expr> masked;
    visit_postorder(roots, [&](Expr expr) {
      if (!always.contains(expr)) masked.insert(expr);
    });
    return masked;
  }

  void check_expressions(std::span<const Expr> roots) {
    for (Expr root : roots) {
      if (root.valid()) continue;
      fault(8, "no value");
      return;
    }
    check_nodes(roots, false);
  }

  void check_nodes(std::span<const Expr> roots, bool has_product) {
    const std::unordered_set<Expr> masked = find_masked(roots);
    visit_postorder(roots, [&](Expr expr) {
      switch (expr.op()) {
        case ExprOp::kLoad:
          check_load(expr, masked.contains(expr));
          break;
        case ExprOp::kIndexValue:
          check_scope(expr.index(), 0);
          break;
        case ExprOp::kCheckIndex: {
          const Index extent = expr.index();
          require_sizes({&extent, 1}, 8, "extent of check_index");
          break;
        }
        case ExprOp::kReduced:
          require(has_product && expr.number() == 0 && expr.dtype() == DType::kFloat32, 11,
                  "reduced " + std::to_string(expr.number()));
          break;
        default:
          break;
      }
    });
  }

  void check_load(Expr expr, bool masked) {
    if (!known(expr.buffer())) return;
    const Buffer& buffer = program_.buffer(expr.buffer());
    require(buffer.dtype == expr.dtype(), 9,
            "load of " + std::string(to_string(expr.dtype())) + " from buffer " + buffer.name +
                " of " + std::string(to_string(buffer.dtype)));
    check_coordinates(expr.buffer(), expr.coordinates(), expr.operands().size(), masked);
  }

  // ---- operations ----

  void check_operation(const Operation& operation) {
    where_ = operation.origin.empty() ? "operation" : operation.origin;
    start_scope();
    BufferId output;
    if (const auto* pointwise = std::get_if<Pointwise>(&operation.v)) output = pointwise->output;
    if (const auto* scatter = std::get_if<Scatter>(&operation.v)) output = scatter->output;
    for (BufferId id : buffers_read(operation)) {
      if (!known(id)) continue;
      const bool in_place = output == id && program_.buffer(id).kind == BufferKind::kInput;
      require(written_[id.value] && !(overwritten_[id.value] && !in_place), 13,
              "buffer " + name(id) +
                  (overwritten_[id.value] ? " is read after it was overwritten"
                                          : " is read before it is written"));
    }
    std::visit([this](const auto& item) { check(item); }, operation.v);
  }

  void check(const Pointwise& item) {
    check_loops(item.loops);
    check_expressions({&item.value, 1});
    if (!check_output_buffer(item.output, item.loops.extents, item.value)) return;
    check_in_place(item.output, item.value, item.loops);
    write_loops_output(item.output);
  }

  void check(const Reduction& item) {
    check_loops(item.loops);
    check_loops(item.reduction);
    check_expressions({&item.value, 1});
    if (!item.value.valid()) return;
    const DType dtype = item.value.dtype();
    const bool wants_bool = item.kind == ReductionKind::kAny || item.kind == ReductionKind::kAll;
    const bool wants_number = item.kind == ReductionKind::kSum || item.kind == ReductionKind::kProd;
    require(!is_half(dtype) && !(wants_bool && dtype != DType::kBool) &&
                !(wants_number && dtype == DType::kBool),
            16, std::string(to_string(item.kind)) + " of " + std::string(to_string(dtype)));
    if (check_output_buffer(item.output, item.loops.extents, item.value,
                            result_dtype(item.kind, dtype))) {
      write(item.output, BufferKind::kComputed);
    }
  }

  void check(const Attention& item) {
    check_loops(item.loops);
    check_loops(item.keys);
    check_loops(item.factors);
    const size_t rank = item.loops.variables.size();
    const bool has_loops =
        rank >= 2 && item.keys.variables.size() == 1 && item.factors.variables.size() == 1 &&
        item.loops.variables[rank - 1].is_symbol() && item.keys.variables[0].is_symbol() &&
        item.factors.variables[0].is_symbol();
    require(has_loops, 21, "not the loops of a query, a feature, keys and factors");
    if (!has_loops || !item.query.valid() || !item.key.valid() || !item.value.valid() ||
        !item.score.valid()) {
      require(!has_loops, 8, "no value");
      return;
    }
    const std::array<Expr, 3> loads = {item.query, item.key, item.value};
    check_expressions(loads);
    check_nodes({&item.score, 1}, true);
    for (Expr load : loads) {
      require(load.op() == ExprOp::kLoad && load.operands().empty() &&
                  (is_half(load.dtype()) || load.dtype() == DType::kFloat32) &&
                  load.dtype() == item.value.dtype(),
              21, "an operand that is no load of a float32 or a half float");
    }
    require(item.score.dtype() == DType::kFloat32, 21, "the score is not float32");
    const Index query = item.loops.variables[rank - 2];
    const Index feature = item.loops.variables[rank - 1];
    const Index key = item.keys.variables[0];
    const Index factor = item.factors.variables[0];
    require_independent(item.query, {feature, key});
    require_independent(item.key, {query, feature});
    require_independent(item.value, {query, factor});
    require_independent(item.score, {feature, factor});
    if (check_output_buffer(item.output, item.loops.extents, item.score))
      write(item.output, BufferKind::kComputed);
    if (item.logsumexp.valid() &&
        check_output_buffer(item.logsumexp, std::span(item.loops.extents).first(rank - 1),
                            item.score))
      write(item.logsumexp, BufferKind::kComputed);
  }

  void require_independent(Expr expr, std::initializer_list<Index> variables) {
    for (Index index : collect_indices({&expr, 1})) {
      for (Index variable : variables) {
        require(!variable.is_symbol() || !index.depends_on(variable), 21,
                "an operand depends on " + to_string(variable));
      }
    }
  }

  void check(const Scan& item) {
    check_loops(item.loops);
    check_expressions({&item.value, 1});
    require(item.axis < item.loops.extents.size(), 16,
            "axis " + std::to_string(item.axis) + " of " +
                std::to_string(item.loops.extents.size()) + " loops");
    if (!item.value.valid()) return;
    const DType dtype = item.value.dtype();
    require(!is_half(dtype) && dtype != DType::kBool, 16,
            "scan " + std::string(to_string(item.kind)) + " of " + std::string(to_string(dtype)));
    if (check_output_buffer(item.output, item.loops.extents, item.value)) {
      write(item.output, BufferKind::kComputed);
    }
  }

  void check(const Scatter& item) {
    if (item.initial.valid()) {
      check_loops(item.initial_loops);
      check_expressions({&item.initial, 1});
      check_output_buffer(item.output, item.initial_loops.extents, item.initial);
      check_in_place(item.output, item.initial, item.initial_loops);
      start_scope();
    }
    check_loops(item.loops);
    std::vector<Expr> roots = item.runtime_indices;
    roots.push_back(item.value);
    check_expressions(roots);
    if (!known(item.output)) return;
    const Buffer& output = program_.buffer(item.output);
    require(item.initial.valid() || output.kind == BufferKind::kInput, 17,
            "buffer " + output.name + " is not an input and has no initial value");
    for (Expr index : item.runtime_indices) {
      require(!index.valid() || index.dtype() == DType::kInt64, 17, "runtime index is not int64");
    }
    check_coordinates(item.output, item.target, item.runtime_indices.size(), false);
    if (!item.value.valid()) return;  // P8
    require(item.value.dtype() == output.dtype, 15,
            "value of " + std::string(to_string(item.value.dtype())) + " for buffer " +
                output.name + " of " + std::string(to_string(output.dtype)));
    require(output.dtype != DType::kBool ||
                (item.mode != StoreMode::kAdd && item.mode != StoreMode::kMul),
            17, std::string(to_string(item.mode)) + " of bool");
    visit_postorder(roots, [&](Expr expr) {
      require(expr.op() != ExprOp::kLoad || expr.buffer() != item.output, 17,
              "the scatter loads buffer " + output.name + ", which it writes");
    });
    write_loops_output(item.output);
  }

  void check(const ExternKernel& item) {
    for (const ExternArgument& argument : item.arguments) check_argument(argument);
    for (BufferId id : item.mutated) {
      if (!known(id)) continue;
      const std::vector<BufferId> read = buffers_read({item, {}, {}});
      require(std::find(read.begin(), read.end(), id) != read.end(), 19,
              "buffer " + name(id) + " is mutated but not an argument");
      require(program_.buffer(id).kind != BufferKind::kConstant, 12,
              "constant " + name(id) + " is written");
    }
    for (BufferId id : item.outputs) {
      if (id.valid() && known(id)) write(id, BufferKind::kExtern);
    }
  }

  void check_argument(const ExternArgument& argument) {
    if (const auto* view = std::get_if<BufferView>(&argument.v)) check_view(*view);
    if (const auto* index = std::get_if<Index>(&argument.v)) {
      require_sizes({index, 1}, 18, "int argument");
    }
    if (const auto* list = std::get_if<ExternList>(&argument.v)) {
      for (const ExternArgument& item : *list) check_argument(item);
    }
  }

  // False where the output does not exist.
  bool check_output_buffer(BufferId id, std::span<const Index> extents, Expr value,
                           std::optional<DType> dtype = std::nullopt) {
    if (!known(id)) return false;
    const Buffer& buffer = program_.buffer(id);
    require(std::equal(extents.begin(), extents.end(), buffer.sizes.begin(), buffer.sizes.end()),
            15, "loops do not have the sizes of buffer " + buffer.name);
    if (!value.valid()) return true;
    const DType result = dtype.value_or(value.dtype());
    require(result == buffer.dtype, 15,
            "value of " + std::string(to_string(result)) + " for buffer " + buffer.name + " of " +
                std::string(to_string(buffer.dtype)));
    return true;
  }

  void check_in_place(BufferId output, Expr value, const LoopNest& loops) {
    visit_postorder({&value, 1}, [&](Expr expr) {
      if (expr.op() != ExprOp::kLoad || expr.buffer() != output) return;
      require(std::equal(expr.coordinates().begin(), expr.coordinates().end(),
                         loops.variables.begin(), loops.variables.end()),
              14, "input " + name(output) + " is loaded at another element than is written");
    });
  }

  // A Pointwise or a Scatter writes a computed buffer or an input.
  void write_loops_output(BufferId id) {
    if (program_.buffer(id).kind != BufferKind::kInput) {
      write(id, BufferKind::kComputed);
      return;
    }
    require(!overwritten_[id.value], 12, "buffer " + name(id) + " is written twice");
    overwritten_[id.value] = true;
  }

  void write(BufferId id, BufferKind kind) {
    const Buffer& buffer = program_.buffer(id);
    const bool fits = buffer.kind == kind;
    require(fits, 12,
            "buffer " + buffer.name + " is not " +
                (kind == BufferKind::kExtern ? "a library result" : "computed"));
    if (fits) require(!written_[id.value], 12, "buffer " + buffer.name + " is written twice");
    written_[id.value] = true;
  }

  // ---- views and outputs ----

  void check_view(const BufferView& view) {
    if (!known(view.buffer)) return;
    require(view.sizes.size() == view.strides.size() && view.offset.valid() &&
                view.dtype != DType::kOther,
            18, "view of buffer " + name(view.buffer) + " is incomplete");
    require_sizes(view.sizes, 18, "size of a view");
    require_sizes(view.strides, 18, "stride of a view");
    require_sizes({&view.offset, 1}, 18, "offset of a view");
  }

  void check_output(const ProgramOutput& output) {
    if (const auto* index = std::get_if<Index>(&output.v)) {
      require_sizes({index, 1}, 20, "int output");
    }
    if (const auto* view = std::get_if<BufferView>(&output.v)) {
      check_view(*view);
      if (!program_.buffers().contains(view->buffer)) return;
      require(written_[view->buffer.value], 20,
              "buffer " + name(view->buffer) + " is never written");
    }
  }

  const Program& program_;
  std::string where_;
  std::vector<std::string> faults_;
  std::vector<bool> written_;
  std::vector<bool> overwritten_;  // inputs that a Pointwise has written
  std::unordered_set<Index> scope_;
  uint32_t num_loops_ = 0;
};

}  // namespace

std::vector<std::string> find_program_faults(const Program& program) {
  return Verifier(program).run();
}

void verify_program(const Program& program) {
  std::string text;
  for (const std::string& fault : find_program_faults(program)) text += "\n  " + fault;
  if (!text.empty()) throw InternalError("invalid program:" + text);
}

}  // namespace litz
