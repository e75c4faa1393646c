// Scalar expressions: what one iteration of a loop nest computes.
//
// An Expr is an immutable, interned node of a DAG (equality is identity, so common subexpressions
// are one node). Leaves are constants, index values and loads; a load names a buffer and the
// coordinates of the element, one Index per dimension of the buffer, over loop variables, size
// symbols and the runtime index values i0, i1, ... which stand for the load's operands (int64
// expressions, proven or checked to be in range). Views are never nodes: they are the coordinates.
//
// make() checks operand counts and dtypes (InternalError) and canonicalizes only where no value can
// change: a cast to the operand's own dtype is the operand, a cast after a cast that loses nothing
// skips it, a choice with a constant condition or two equal branches is the branch, operations on
// constants fold where the result is exact (ir/fold_constants.h), of a + b and b + a (integers,
// bools and equality) the first made stands for both, constants go last there, check_index of a
// value known to be in range is the value. So the result of make() need not have the operation
// asked for. float16 and bfloat16 are only loaded, selected and cast; every other operation refuses
// them. The meaning of the operations is at the top of ir/expr_ops.h.
//
// Expressions may be 100,000 nodes deep: nothing here recurses over operands.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/expr_ops.h"
#include "support/dtype.h"
#include "support/ids.h"
#include "symbolic/index.h"

namespace litz {

struct BufferTag;
using BufferId = Id<BufferTag>;
class ExprContext;
struct ExprNode;

// What eager raises where a kCheckIndex fails.
enum class IndexFault : uint32_t {
  kIndexError,    // LITZ_INDEX_OUT_OF_RANGE
  kRuntimeError,  // LITZ_INDEX_OUT_OF_BOUNDS
};

// A constant in the value set of its dtype: integers and bool in `integer`, floats in `real`,
// already rounded.
struct Scalar {
  DType dtype = DType::kFloat32;
  int64_t integer = 0;
  double real = 0;

  // Wraps to an integer dtype, rounds to a floating one.
  static Scalar of_int(DType dtype, int64_t value);
  // As kCast from float64.
  static Scalar of_double(DType dtype, double value);
  bool is_zero() const;
};

class Expr {
 public:
  Expr() = default;
  explicit Expr(const ExprNode* node) : node_(node) {}

  bool valid() const { return node_ != nullptr; }
  const ExprNode* node() const { return node_; }
  ExprOp op() const;
  DType dtype() const;
  uint32_t id() const;  // dense, operands have smaller ids
  std::span<const Expr> operands() const;
  Expr operand(size_t i) const { return operands()[i]; }
  ExprContext& context() const;

  const Scalar& scalar() const;                // kConstant
  Index index() const;                         // kIndexValue; kCheckIndex: the extent
  BufferId buffer() const;                     // kLoad
  std::span<const Index> coordinates() const;  // kLoad
  uint32_t number() const;                     // kReduced
  IndexFault fault() const;                    // kCheckIndex

  friend bool operator==(Expr a, Expr b) { return a.node_ == b.node_; }

 private:
  const ExprNode* node_ = nullptr;
};

class ExprContext {
 public:
  explicit ExprContext(std::shared_ptr<IndexContext> indices);
  ~ExprContext();
  ExprContext(const ExprContext&) = delete;
  ExprContext& operator=(const ExprContext&) = delete;

  IndexContext& indices() const { return *indices_; }

  Expr constant(Scalar scalar);
  Expr constant(DType dtype, double value) { return constant(Scalar::of_double(dtype, value)); }
  Expr constant_int(DType dtype, int64_t value) { return constant(Scalar::of_int(dtype, value)); }
  Expr index_value(Index index);  // int64
  Expr load(BufferId buffer, DType dtype, std::vector<Index> coordinates,
            std::vector<Expr> runtime_indices = {});
  Expr reduced(uint32_t number, DType dtype);
  Expr cast(Expr a, DType dtype);
  Expr bitcast(Expr a, DType dtype);
  Expr where(Expr condition, Expr a, Expr b);
  Expr masked(Expr condition, Expr value, Expr other);
  Expr check_index(Expr value, Index extent, IndexFault fault = IndexFault::kIndexError);
  Expr check(Expr value, Expr condition);
  Expr unary(ExprOp op, Expr a);
  Expr binary(ExprOp op, Expr a, Expr b);
  Expr fma(Expr a, Expr b, Expr c);
  // Any operation that is not a leaf. The dtype counts for kCast and kBitcast only; `extent` and
  // `fault` are for kCheckIndex.
  Expr make(ExprOp op, DType dtype, std::span<const Expr> operands, Index extent = {},
            IndexFault fault = IndexFault::kIndexError);

  size_t size() const;

 private:
  struct Impl;
  std::shared_ptr<IndexContext> indices_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace litz

template <>
struct std::hash<litz::Expr> {
  size_t operator()(litz::Expr e) const noexcept { return std::hash<const void*>()(e.node()); }
};

namespace litz {

// Rewrites expressions: loop variables by `indices`, loads by `on_load` (a null result keeps the
// load). Memoizes; one rewriter serves many expressions. `on_load` sees coordinates and runtime
// indices that are rewritten already.
class ExprRewriter {
 public:
  using OnLoad = std::function<Expr(BufferId buffer, std::span<const Index> coordinates,
                                    std::span<const Expr> runtime_indices, Expr original)>;
  ExprRewriter(ExprContext& context, Substitution indices, OnLoad on_load = {});
  // From now on kReduced(n) becomes kReduced(n + by).
  void renumber_reductions(uint32_t by) { reductions_before_ = by; }
  Expr apply(Expr expression);

 private:
  Expr rewrite_node(Expr expression);  // its operands are in the memo

  ExprContext& context_;
  Substitution indices_;
  OnLoad on_load_;
  uint32_t reductions_before_ = 0;
  std::unordered_map<Expr, Expr> memo_;
};

// Calls visit once for every node reachable from the roots, operands first.
void visit_postorder(std::span<const Expr> roots, const std::function<void(Expr)>& visit);

// Every Index in the expressions: coordinates of loads, index values, extents of checks.
std::vector<Index> collect_indices(std::span<const Expr> roots);

}  // namespace litz
