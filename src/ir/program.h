// The loop-level program: operations on buffers, before any decision about fusion, order or
// storage.
//
// Every computed operation is a loop nest over the elements of what it makes. Nothing is inlined
// and no two operations share a loop; the scheduler decides that. A buffer is written by exactly
// one operation; input buffers that the graph mutates are written by one Pointwise or Scatter,
// after which no operation reads the old value.
//
// Loop variables are positional: variable number i of an operation is IndexContext::variable(i,
// extents[i]), outer loops first, reduction loops after them; where an extent is the constant 1 the
// variable is the constant 0.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/expr.h"
#include "support/dtype.h"
#include "support/ids.h"
#include "symbolic/index.h"

namespace litz {

struct OperationTag;
using OperationId = Id<OperationTag>;

enum class BufferKind : uint8_t {
  kInput,     // given by the caller; `number` is the input's position
  kConstant,  // bytes known at compile time
  kComputed,  // written by a loop operation, storage planned by the scheduler
  kExtern,    // result of a library op
};

struct Buffer {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<Index> sizes;
  std::vector<Index> strides;  // in elements; element coordinates c lives at dot(c, strides)
  BufferKind kind = BufferKind::kComputed;
  uint32_t number = 0;           // kInput
  std::vector<std::byte> bytes;  // kConstant: elements in storage order
};

// A strided window on a buffer's storage, as a library op or the caller sees it. The dtype may
// differ from the buffer's (bit view).
struct BufferView {
  BufferId buffer;
  DType dtype = DType::kFloat32;
  std::vector<Index> sizes;
  std::vector<Index> strides;
  Index offset;  // elements from the buffer's first element
};

struct LoopNest {
  std::vector<Index> extents;    // outer loops
  std::vector<Index> variables;  // one for each extent
};

// output[variables] = value
struct Pointwise {
  BufferId output;
  LoopNest loops;
  Expr value;
};

#define LITZ_REDUCTION_KINDS(X)                                                          \
  X(kSum, "sum", "0 for nothing; floats in any order")                                   \
  X(kProd, "prod", "1 for nothing")                                                      \
  X(kMax, "max", "NaN wins; at least one element")                                       \
  X(kMin, "min", "NaN wins; at least one element")                                       \
  X(kAny, "any", "bool or; false for nothing")                                           \
  X(kAll, "all", "bool and; true for nothing")                                           \
  X(kArgMax, "argmax", "row-major position of the first maximum, NaN is largest; int64") \
  X(kArgMin, "argmin", "row-major position of the first minimum, NaN is smallest; int64")

enum class ReductionKind : uint8_t {
#define LITZ_REDUCTION_ENUM(name, ...) name,
  LITZ_REDUCTION_KINDS(LITZ_REDUCTION_ENUM)
#undef LITZ_REDUCTION_ENUM
};
std::string_view to_string(ReductionKind kind);
std::optional<ReductionKind> parse_reduction_kind(std::string_view spelling);
// The result's dtype for operands of this one: int64 for argmax and argmin, else the same.
DType result_dtype(ReductionKind kind, DType operand);
Scalar identity(ReductionKind kind, DType dtype);  // not for argmax and argmin

// output[variables] = reduction of value over reduction_variables. The value's dtype is the
// accumulator's.
struct Reduction {
  BufferId output;
  LoopNest loops;
  LoopNest reduction;
  ReductionKind kind = ReductionKind::kSum;
  Expr value;
  // A matrix product (schedule/matrix_product.h); of half floats it may be rounded as those are.
  bool is_product = false;
};

// Attention: values weighted by the softmax of scores.
//
//   product(..., i, j)  = sum over d of query(..., i, d) * key(..., j, d), in float32
//   score(..., i, j)    a float32 expression of kReduced(0), which is the product, and positions
//   weight(..., i, j)   = softmax of the scores over j
//   output[..., i, e]   = sum over j of weight(..., i, j) * value(..., j, e), in float32
//   logsumexp[..., i]   = the logarithm of the sum over j of exp(score(..., i, j)), if it is wanted
//
// Sums are in any order, and weights may be rounded to the values' dtype before the last one. The
// last two of `loops` are i and e, those before them are batch loops. A position i all of whose
// scores are -inf, or that has no j, gets zeros, for its logarithm as well. A j whose score is -inf
// has no weight, and nobody may look at what it holds: NaN there may be lost.
struct Attention {
  BufferId output;
  BufferId logsumexp;  // float32; no id: it is not wanted
  LoopNest loops;
  LoopNest keys;     // one loop, j
  LoopNest factors;  // one loop, d
  Expr query;        // loads of float32 or of half floats, all of one dtype
  Expr key;
  Expr value;
  Expr score;
};

enum class ScanKind : uint8_t { kSum, kProd, kMax, kMin };
std::string_view to_string(ScanKind kind);
std::optional<ScanKind> parse_scan_kind(std::string_view spelling);
// What is done with each element.
ReductionKind reduction_of(ScanKind kind);

// output[..., j, ...] = value[..., 0, ...] op ... op value[..., j, ...] along loop number `axis`,
// in order.
struct Scan {
  BufferId output;
  LoopNest loops;
  uint32_t axis = 0;
  ScanKind kind = ScanKind::kSum;
  Expr value;
};

enum class StoreMode : uint8_t { kStore, kAdd, kMul, kMin, kMax };
std::string_view to_string(StoreMode mode);
std::optional<StoreMode> parse_store_mode(std::string_view spelling);

// output[v] = initial for all v of initial_loops; then for all variables of `loops` in row-major
// order: output[target] (mode)= value. `runtime_indices` are the values of i0, i1, ... in target.
// Where `initial` is null the output keeps what it holds (an input buffer that the graph mutates).
struct Scatter {
  BufferId output;
  LoopNest initial_loops;
  Expr initial;
  LoopNest loops;
  std::vector<Index> target;
  std::vector<Expr> runtime_indices;
  Expr value;
  StoreMode mode = StoreMode::kStore;
};

struct ExternArgument;
using ExternList = std::vector<ExternArgument>;
struct ExternDevice {
  std::string value;
};
struct ExternLayout {
  int value;
};
struct ExternMemoryFormat {
  int value;
};
struct ExternArgument {
  std::variant<std::monostate, BufferView, Index, double, bool, std::string, DType, ExternDevice,
               ExternLayout, ExternMemoryFormat, ExternList>
      v;
};

// A library op by schema name, arguments in schema order. Results that are not tensors have no
// buffer (invalid id).
struct ExternKernel {
  std::string name;  // "aten::mm"
  std::string overload;
  std::string schema;  // full schema text, for the door that calls it
  std::string node;    // FX node, for messages
  std::string
      reason;  // why it is not lowered; empty where the library is the intended implementation
  std::vector<ExternArgument> arguments;
  std::vector<BufferId> outputs;
  bool results_are_views = false;  // look into its arguments: whoever calls it copies them at once
  bool results_may_alias =
      false;  // in memory that something else may see as well: nothing writes over them
  std::vector<BufferId> mutated;  // buffers that it writes to besides its outputs
  bool has_side_effects =
      false;  // runs even if nobody uses the result (random state, asserts, mutation)
};

struct Operation {
  std::variant<Pointwise, Reduction, Attention, Scan, Scatter, ExternKernel> v;
  std::string origin;  // "softmax: model.py:12", the graph node and the user's line
  std::string op;      // "aten::_softmax", for names of kernels; not in the text form
};

struct ProgramOutput {
  std::variant<std::monostate, BufferView, Index> v;
};

class Program {
 public:
  explicit Program(std::shared_ptr<IndexContext> indices);

  IndexContext& indices() const { return exprs_->indices(); }
  ExprContext& exprs() const { return *exprs_; }
  const std::shared_ptr<ExprContext>& shared_exprs() const { return exprs_; }

  BufferId add_buffer(Buffer buffer) { return buffers_.push_back(std::move(buffer)); }
  OperationId add_operation(Operation operation) {
    return operations_.push_back(std::move(operation));
  }

  Buffer& buffer(BufferId id) { return buffers_[id]; }
  const Buffer& buffer(BufferId id) const { return buffers_[id]; }
  const IdVector<BufferId, Buffer>& buffers() const { return buffers_; }
  IdVector<OperationId, Operation>& operations() { return operations_; }
  const IdVector<OperationId, Operation>& operations() const { return operations_; }

  // Inputs in calling order: a tensor's buffer, or the size symbols that an int argument binds.
  struct Input {
    std::string name;
    BufferId buffer;  // valid for a tensor
    Index integer;    // valid for an int argument
  };
  std::vector<Input> inputs;
  std::vector<ProgramOutput> outputs;

 private:
  std::shared_ptr<ExprContext> exprs_;
  IdVector<BufferId, Buffer> buffers_;
  IdVector<OperationId, Operation> operations_;
};

// Loop variables for the extents, numbered from `first`.
LoopNest make_loops(IndexContext& context, std::span<const Index> extents, uint32_t first = 0);

// Every size symbol that the program mentions, in order of id.
std::vector<Index> size_symbols(const Program& program);

// True if the view is the whole buffer as it lies in memory.
bool is_whole_buffer(const Program& program, const BufferView& view);

// The expressions of a loop operation, roots of a DAG; none for a library op.
std::vector<Expr> expressions(const Operation& operation);

// Buffers that an operation reads (each once) and writes.
std::vector<BufferId> buffers_read(const Operation& operation);
std::vector<BufferId> buffers_written(const Operation& operation);

}  // namespace litz
