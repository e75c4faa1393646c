// Prints expressions as statements of the generated C++, each once, at the outermost loop where it
// can be computed.
//
// The printer keeps a stack of scopes, one for each open block of the generated function, from the
// function's body to the innermost loop. A scope knows which loops are bound there; a value that
// does not vary along the inner loops is printed in an outer scope's text, which lies in front of
// the inner block. In a block under a condition (kMasked) nothing is moved out, so that no load
// happens that the program would not do.
//
// At most one loop is the vector loop. Values that vary along it are vectors of `lanes` elements
// (in the types of the prelude), all others are scalars. A value that cannot be a vector (an
// irregular load, a function without a vector form) is computed lane by lane.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/common/kernel_analysis.h"
#include "codegen/cpp/prelude.h"
#include "support/indented_buffer.h"

namespace litz {

// Names of a kernel's arguments in order of first use: pointers p0, p1, ... for buffers, and its
// size symbols.
class KernelArguments {
 public:
  explicit KernelArguments(const Program& program) : program_(program) {}
  std::string pointer(BufferId buffer);
  std::string symbol(Index symbol);
  const std::vector<BufferId>& buffers() const { return buffers_; }
  const std::vector<Index>& symbols() const { return symbols_; }
  const Program& program() const { return program_; }
  void set_checks_values() { checks_values_ = true; }
  bool checks_values() const { return checks_values_; }

 private:
  const Program& program_;
  std::vector<BufferId> buffers_;
  std::vector<Index> symbols_;
  bool checks_values_ = false;
};

// The element type that a value of this dtype has in registers: half floats are kept as float32.
DType register_dtype(DType dtype);

class CppBody {
 public:
  CppBody(KernelAnalysis& analysis, Prelude& prelude, KernelArguments& arguments)
      : analysis_(analysis), prelude_(prelude), arguments_(arguments) {
    scopes_.reserve(kMaxScopes);  // references to scopes stay valid while inner ones open
  }

  // ---- scopes ----
  // Opens a scope that binds one more loop (or none), under the C++ name given; returns where its
  // statements go.
  static constexpr size_t kNoLoop = SIZE_MAX;
  static constexpr size_t kMaxScopes = 256;
  IndentedBuffer& push_scope(size_t loop, std::string name);
  // The scope of one iteration of the outer loops, which the caller binds next.
  IndentedBuffer& push_iteration_scope();
  // The vector loop: `valid` is the text of the number of valid lanes in a tail, or empty for a
  // whole vector.
  IndentedBuffer& push_vector_scope(size_t loop, std::string name, int lanes, std::string valid);
  // Closes the innermost scope and appends `header {`, its statements, and `}` to the scope around
  // it; without header just the statements.
  // kBlock as the header makes a plain block.
  static constexpr std::string_view kBlock = "{";
  void pop_scope(const std::string& header);
  IndentedBuffer take_scope();  // closes the innermost scope and returns its statements instead
  // The statements of the outermost scope so far, which is emptied.
  std::string take_text();
  IndentedBuffer& out() { return scopes_.back().text; }

  // ---- values ----
  bool varies(Expr e) {
    return vector_loop_ != kNoLoop && (analysis_.depends(e) >> vector_loop_ & 1) != 0;
  }
  // The value as a scalar; must not vary along the vector loop.
  std::string scalar(Expr e);
  // The value in every lane of the vector; a bool as a mask of lanes of `mask_bytes`.
  std::string vector(Expr e);
  std::string mask(Expr e, int mask_bytes);
  // vector() or scalar(), as the current scope wants it.
  std::string value(Expr e) { return lanes_ > 1 ? vector(e) : scalar(e); }

  // The kernel's stores in the inner loops of a stage, or those outside: vectors where the scope is
  // a vector scope. All values are computed before the first store, which may overwrite what
  // another one's value is loaded from.
  void store_inner(uint32_t stage);
  void store_outer();
  void store_after_outer();  // of an element of the inner loops

  // Denormal bfloat16 may be stored as 0, as the library's matrix products do it.
  void flush_denormals() { flushes_ = true; }

  // Gives kReduced(number) a name in the current scope.
  void define_reduced(uint32_t number, std::string name, bool is_vector);
  // Gives a value that is at hand a name in the current scope.
  void define_vector(Expr e, std::string name) {
    scopes_.back().values[e] = {std::move(name), true, 0};
  }
  void define_scalar(Expr e, std::string name) {
    scopes_.back().values[e] = {std::move(name), false, 0};
  }
  // A contiguous load along another loop than the vector loop, at the positions bound in this
  // scope, of whole vectors or of so many valid lanes.
  std::string load_along(Expr load, int lanes, const std::string& valid);
  // Where a load that has no operands reads, for the loops bound in this scope.
  std::string address_of(Expr load) { return address(load.buffer(), index(load.coordinates()[0])); }
  // Where the accumulators of vectorised outer loops are: the result for iteration i of the loop is
  // element i - first of an array.
  void set_accumulator_array(uint32_t number, std::string array, size_t loop, std::string first);

  std::string index(Index index);  // as an int64 C++ expression
  int lanes() const { return lanes_; }
  const std::string& valid_lanes() const { return valid_; }
  // A name that no other value has. i, u and f are no stems: u8 is a type.
  std::string fresh(std::string_view stem);

 private:
  struct Value {
    std::string text;
    bool is_vector = false;
    int mask_bytes = 0;  // of a bool vector
  };
  struct AccumulatorArray {
    std::string name;
    size_t loop = kNoLoop;
    std::string first;
  };
  struct Scope {
    IndentedBuffer text;
    LoopMask bound = 0;
    bool conditional = false;
    std::unordered_map<Expr, Value> values;
    std::unordered_map<std::string, std::string>
        derived;  // splats and converted masks, by what they are made from
  };

  Scope& scope_for(LoopMask depends);
  const Value& emit(Expr e);
  Expr stored_value(const KernelStore& store) const;
  template <class Select>
  void store_where(const Select& select);
  void prepare(const KernelStore& store);
  void store(const KernelStore& store);
  const Value* find(Expr e) const;
  Value compute(Expr e, Scope& scope, bool as_vector);
  Value compute_scalar(Expr e, Scope& scope);
  Value compute_vector(Expr e, Scope& scope);
  Value load_vector(Expr e, Scope& scope);
  Value random_vector(Expr e, Scope& scope);
  std::string accumulator_element(uint32_t number);  // a pointer
  Value lane_by_lane(Expr e, Scope& scope);
  Value masked_vector(Expr e, Scope& scope);
  Value masked_scalar(Expr e, Scope& scope);
  Value define(Scope& scope, const std::string& type, const std::string& expression, bool is_vector,
               int mask_bytes = 0);
  std::string loops_run(const Scope& scope);
  std::string runtime_offset(Index offset, std::span<const Expr> runtime,
                             const std::function<std::string(Expr)>& scalar_of);
  std::string address(BufferId buffer, const std::string& offset);
  std::string zero_filled_array(Scope& scope, DType dtype);
  int bytes_of(Expr e) const;
  int mask_bytes_of(Expr e);
  std::string literal(const Scalar& scalar, DType dtype);
  std::string bound_name(Index symbol) const;

  KernelAnalysis& analysis_;
  Prelude& prelude_;
  KernelArguments& arguments_;
  std::vector<Scope> scopes_;
  std::unordered_map<Index, std::string>
      names_;  // loop variables and i0, i1, ... while an address is printed
  std::unordered_map<uint32_t, AccumulatorArray> arrays_;
  LoopMask set_aside_ = 0;  // loops bound in scopes that are set aside
  size_t vector_loop_ = kNoLoop;
  int lanes_ = 1;
  std::string valid_;
  bool flushes_ = false;
  uint32_t next_ = 0;
};

}  // namespace litz
