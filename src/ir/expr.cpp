#include "ir/expr.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory_resource>
#include <unordered_set>

#include "ir/fold_constants.h"
#include "support/error.h"

namespace litz {

// Trivially destructible: it and its arrays live in the context's arena.
struct ExprNode {
  ExprContext* context;
  uint64_t hash;
  uint32_t id;
  ExprOp op;
  DType dtype;
  uint32_t number;  // kLoad: the buffer; kReduced: the result; kCheckIndex: the IndexFault
  uint32_t num_operands;
  uint32_t num_coordinates;
  const Expr* operands;
  const Index* coordinates;
  Index index;
  Scalar scalar;
};

namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value;
  hash *= 0x9e3779b97f4a7c15ull;
  return hash ^ (hash >> 32);
}

// Constants differ by their bits, so that 0 and -0 are two.
bool same_scalar(const Scalar& a, const Scalar& b) {
  return a.dtype == b.dtype && a.integer == b.integer &&
         std::bit_cast<uint64_t>(a.real) == std::bit_cast<uint64_t>(b.real);
}

bool same_node(const ExprNode& a, const ExprNode& b) {
  return a.hash == b.hash && a.op == b.op && a.dtype == b.dtype && a.number == b.number &&
         a.index == b.index && same_scalar(a.scalar, b.scalar) &&
         std::equal(a.operands, a.operands + a.num_operands, b.operands,
                    b.operands + b.num_operands) &&
         std::equal(a.coordinates, a.coordinates + a.num_coordinates, b.coordinates,
                    b.coordinates + b.num_coordinates);
}

uint64_t hash_node(const ExprNode& node) {
  uint64_t hash =
      mix(static_cast<uint64_t>(node.op) << 8 | static_cast<uint64_t>(node.dtype), node.number);
  hash = mix(hash, node.index.valid() ? node.index.id() + uint64_t{1} : 0);
  hash = mix(hash, static_cast<uint64_t>(node.scalar.integer));
  hash = mix(hash, std::bit_cast<uint64_t>(node.scalar.real));
  for (uint32_t i = 0; i < node.num_operands; ++i) hash = mix(hash, node.operands[i].id());
  for (uint32_t i = 0; i < node.num_coordinates; ++i) hash = mix(hash, node.coordinates[i].id());
  return hash;
}

std::string describe(ExprOp op, DType dtype) {
  return std::string(to_string(op)) + " of " + std::string(to_string(dtype));
}

bool in_domain(ExprOp op, DType dtype) {
  switch (domain(op)) {
    case OpDomain::kAny:
      return true;
    case OpDomain::kFloat:
      return is_floating(dtype);
    case OpDomain::kIntegral:
      return is_integral(dtype);
    case OpDomain::kBits:
      return !is_floating(dtype);
    case OpDomain::kNumber:
      return dtype != DType::kBool;
  }
  return false;
}

// Whether every value of `from` is a value of `to`.
bool is_exact_cast(DType from, DType to) {
  if (from == to || from == DType::kBool) return true;
  if (to == DType::kBool) return false;
  const int64_t from_bits = 8 * size_of(from);
  if (is_floating(from)) return is_floating(to) && size_of(to) > size_of(from);
  if (is_floating(to)) {
    const int64_t significand = to == DType::kBFloat16  ? 8
                                : to == DType::kFloat16 ? 11
                                : to == DType::kFloat32 ? 24
                                                        : 53;
    return from_bits <= significand;
  }
  const int64_t to_bits = 8 * size_of(to);
  return is_signed(from) ? is_signed(to) && to_bits > from_bits : to_bits > from_bits;
}

// Powers of two whose reciprocal is no denormal float32: multiplying by it gives the quotient to
// the bit, and is faster.
bool has_exact_reciprocal(double divisor) {
  int exponent = 0;
  return std::abs(std::frexp(divisor, &exponent)) == 0.5 && std::abs(exponent) < 126;
}

// Operations whose operands may change places. Floating-point sums and products are left as they
// are written: which NaN of two survives depends on it.
bool is_commutative(ExprOp op, DType dtype) {
  switch (op) {
    case ExprOp::kEq:
    case ExprOp::kNe:
      return true;
    case ExprOp::kAdd:
    case ExprOp::kMul:
    case ExprOp::kMin:
    case ExprOp::kMax:
    case ExprOp::kBitAnd:
    case ExprOp::kBitOr:
    case ExprOp::kBitXor:
      return !is_floating(dtype);
    default:
      return false;
  }
}

// Dtype rules of the operation list. Returns the result's dtype.
DType check_operands(ExprOp op, DType dtype, std::span<const Expr> operands) {
  const int count = operand_count(op);
  LITZ_CHECK(count >= 0 && static_cast<size_t>(count) == operands.size(),
             std::string(to_string(op)) + " with " + std::to_string(operands.size()) + " operands");
  for (Expr operand : operands) {
    LITZ_CHECK(operand.valid(), "null operand of " + std::string(to_string(op)));
  }
  const auto same = [&](Expr a, Expr b) {
    LITZ_CHECK(a.dtype() == b.dtype(), "operands of " + std::string(to_string(op)) + " are " +
                                           std::string(to_string(a.dtype())) + " and " +
                                           std::string(to_string(b.dtype())));
  };
  switch (op) {
    case ExprOp::kCast:
      LITZ_CHECK(is_native(dtype), "cast to " + std::string(to_string(dtype)));
      return dtype;
    case ExprOp::kBitcast:
      LITZ_CHECK(is_native(dtype) && size_of(dtype) == size_of(operands[0].dtype()),
                 describe(op, operands[0].dtype()) + " to " + std::string(to_string(dtype)));
      return dtype;
    case ExprOp::kWhere:
    case ExprOp::kMasked:
      LITZ_CHECK(operands[0].dtype() == DType::kBool,
                 "condition is " + describe(op, operands[0].dtype()));
      same(operands[1], operands[2]);
      return operands[1].dtype();
    case ExprOp::kCheckIndex:
      LITZ_CHECK(operands[0].dtype() == DType::kInt64, describe(op, operands[0].dtype()));
      return DType::kInt64;
    case ExprOp::kCheck:
      LITZ_CHECK(operands[1].dtype() == DType::kBool,
                 "condition is " + describe(op, operands[1].dtype()));
      LITZ_CHECK(in_domain(op, operands[0].dtype()) && !is_half(operands[0].dtype()),
                 describe(op, operands[0].dtype()));
      return operands[0].dtype();
    case ExprOp::kPhilox32:
    case ExprOp::kPhilox64:
      for (Expr operand : operands)
        LITZ_CHECK(operand.dtype() == DType::kInt64, describe(op, operand.dtype()));
      return op == ExprOp::kPhilox32 ? DType::kInt32 : DType::kInt64;
    default:
      break;
  }
  const DType operand = operands[0].dtype();
  for (Expr other : operands.subspan(1)) same(operands[0], other);
  LITZ_CHECK(in_domain(op, operand), describe(op, operand));
  LITZ_CHECK(!is_half(operand), describe(op, operand) + ": cast to f32 first");
  return result_rule(op) == OpResult::kBoolean ? DType::kBool : operand;
}

}  // namespace

// ---- the operation list ----

namespace {

struct OpRow {
  std::string_view spelling;
  int operands;
  OpResult result;
  OpDomain domain;
};

constexpr OpRow kOps[] = {
#define LITZ_EXPR_ROW(name, spelling, operands, result, domain, meaning) \
  {spelling, operands, OpResult::result, OpDomain::domain},
    LITZ_EXPR_OPS(LITZ_EXPR_ROW)
#undef LITZ_EXPR_ROW
};

}  // namespace

std::string_view to_string(ExprOp op) { return kOps[static_cast<size_t>(op)].spelling; }
int operand_count(ExprOp op) { return kOps[static_cast<size_t>(op)].operands; }
OpResult result_rule(ExprOp op) { return kOps[static_cast<size_t>(op)].result; }
OpDomain domain(ExprOp op) { return kOps[static_cast<size_t>(op)].domain; }

std::optional<ExprOp> parse_expr_op(std::string_view spelling) {
  for (size_t i = 0; i < std::size(kOps); ++i) {
    if (kOps[i].spelling == spelling) return static_cast<ExprOp>(i);
  }
  return std::nullopt;
}

// ---- Expr ----

ExprOp Expr::op() const { return node_->op; }
DType Expr::dtype() const { return node_->dtype; }
uint32_t Expr::id() const { return node_->id; }
std::span<const Expr> Expr::operands() const { return {node_->operands, node_->num_operands}; }
ExprContext& Expr::context() const { return *node_->context; }
const Scalar& Expr::scalar() const { return node_->scalar; }
Index Expr::index() const { return node_->index; }
BufferId Expr::buffer() const { return BufferId(node_->number); }
std::span<const Index> Expr::coordinates() const {
  return {node_->coordinates, node_->num_coordinates};
}
uint32_t Expr::number() const { return node_->number; }
IndexFault Expr::fault() const { return static_cast<IndexFault>(node_->number); }

// ---- ExprContext ----

struct ExprContext::Impl {
  std::pmr::monotonic_buffer_resource arena;
  std::vector<const ExprNode*> table = std::vector<const ExprNode*>(256);  // open addressing
  uint32_t size = 0;

  template <class T>
  const T* copy(const T* items, size_t count) {
    if (count == 0) return nullptr;
    T* copied = static_cast<T*>(arena.allocate(count * sizeof(T), alignof(T)));
    std::uninitialized_copy_n(items, count, copied);
    return copied;
  }

  void grow() {
    std::vector<const ExprNode*> bigger(table.size() * 2);
    for (const ExprNode* node : table) {
      if (node == nullptr) continue;
      size_t slot = node->hash & (bigger.size() - 1);
      while (bigger[slot] != nullptr) slot = (slot + 1) & (bigger.size() - 1);
      bigger[slot] = node;
    }
    table = std::move(bigger);
  }

  // The node equal to `wanted`; where there is none, the slot for it.
  const ExprNode* find(const ExprNode& wanted, size_t* slot) const {
    *slot = wanted.hash & (table.size() - 1);
    for (; table[*slot] != nullptr; *slot = (*slot + 1) & (table.size() - 1)) {
      if (same_node(*table[*slot], wanted)) return table[*slot];
    }
    return nullptr;
  }

  // The binary operation with its operands exchanged, if there is one already.
  const ExprNode* find_exchanged(ExprNode wanted) const {
    const Expr exchanged[2] = {wanted.operands[1], wanted.operands[0]};
    wanted.operands = exchanged;
    wanted.hash = hash_node(wanted);
    size_t slot;
    return find(wanted, &slot);
  }

  // The node equal to `wanted`, whose arrays belong to the caller; copied when it is new.
  Expr intern(ExprNode wanted) {
    wanted.hash = hash_node(wanted);
    size_t slot;
    if (const ExprNode* node = find(wanted, &slot)) return Expr(node);
    wanted.id = size++;
    wanted.operands = copy(wanted.operands, wanted.num_operands);
    wanted.coordinates = copy(wanted.coordinates, wanted.num_coordinates);
    const ExprNode* node =
        new (arena.allocate(sizeof(ExprNode), alignof(ExprNode))) ExprNode(wanted);
    table[slot] = node;
    if (size * 2 > table.size()) grow();
    return Expr(node);
  }
};

namespace {

ExprNode blank_node(ExprContext* context, ExprOp op, DType dtype) {
  ExprNode node{};
  node.context = context;
  node.op = op;
  node.dtype = dtype;
  node.scalar.dtype = dtype;
  return node;
}

}  // namespace

ExprContext::ExprContext(std::shared_ptr<IndexContext> indices)
    : indices_(std::move(indices)), impl_(std::make_unique<Impl>()) {}
ExprContext::~ExprContext() = default;

size_t ExprContext::size() const { return impl_->size; }

Expr ExprContext::constant(Scalar scalar) {
  LITZ_CHECK(is_native(scalar.dtype), "constant of " + std::string(to_string(scalar.dtype)));
  ExprNode node = blank_node(this, ExprOp::kConstant, scalar.dtype);
  node.scalar = is_floating(scalar.dtype) ? Scalar::of_double(scalar.dtype, scalar.real)
                                          : Scalar::of_int(scalar.dtype, scalar.integer);
  return impl_->intern(node);
}

Expr ExprContext::index_value(Index index) {
  LITZ_CHECK(index.valid(), "null index");
  if (const auto value = index.as_constant()) return constant_int(DType::kInt64, *value);
  ExprNode node = blank_node(this, ExprOp::kIndexValue, DType::kInt64);
  node.index = index;
  return impl_->intern(node);
}

Expr ExprContext::load(BufferId buffer, DType dtype, std::vector<Index> coordinates,
                       std::vector<Expr> runtime_indices) {
  LITZ_CHECK(
      buffer.valid() && is_native(dtype),
      "load of " + std::string(to_string(dtype)) + " from buffer " + std::to_string(buffer.value));
  for (Index coordinate : coordinates) LITZ_CHECK(coordinate.valid(), "null coordinate of a load");
  for (Expr operand : runtime_indices) {
    LITZ_CHECK(operand.valid() && operand.dtype() == DType::kInt64,
               "a runtime index of a load is not int64");
  }
  ExprNode node = blank_node(this, ExprOp::kLoad, dtype);
  node.number = buffer.value;
  node.coordinates = coordinates.data();
  node.num_coordinates = static_cast<uint32_t>(coordinates.size());
  node.operands = runtime_indices.data();
  node.num_operands = static_cast<uint32_t>(runtime_indices.size());
  return impl_->intern(node);
}

Expr ExprContext::reduced(uint32_t number, DType dtype) {
  LITZ_CHECK(is_native(dtype), "reduced of " + std::string(to_string(dtype)));
  ExprNode node = blank_node(this, ExprOp::kReduced, dtype);
  node.number = number;
  return impl_->intern(node);
}

Expr ExprContext::cast(Expr a, DType dtype) { return make(ExprOp::kCast, dtype, {{a}}); }
Expr ExprContext::bitcast(Expr a, DType dtype) { return make(ExprOp::kBitcast, dtype, {{a}}); }
Expr ExprContext::where(Expr condition, Expr a, Expr b) {
  return make(ExprOp::kWhere, DType::kOther, {{condition, a, b}});
}
Expr ExprContext::masked(Expr condition, Expr value, Expr other) {
  return make(ExprOp::kMasked, DType::kOther, {{condition, value, other}});
}
Expr ExprContext::check_index(Expr value, Index extent, IndexFault fault) {
  return make(ExprOp::kCheckIndex, DType::kInt64, {{value}}, extent, fault);
}
Expr ExprContext::check(Expr value, Expr condition) {
  return make(ExprOp::kCheck, DType::kOther, {{value, condition}});
}
Expr ExprContext::unary(ExprOp op, Expr a) { return make(op, DType::kOther, {{a}}); }
Expr ExprContext::binary(ExprOp op, Expr a, Expr b) { return make(op, DType::kOther, {{a, b}}); }
Expr ExprContext::fma(Expr a, Expr b, Expr c) {
  return make(ExprOp::kFma, DType::kOther, {{a, b, c}});
}

Expr ExprContext::make(ExprOp op, DType dtype, std::span<const Expr> operands, Index extent,
                       IndexFault fault) {
  ExprNode node = blank_node(this, op, check_operands(op, dtype, operands));
  LITZ_CHECK(extent.valid() == (op == ExprOp::kCheckIndex),
             "extent given to " + std::string(to_string(op)));

  switch (op) {
    case ExprOp::kCast: {
      Expr a = operands[0];
      if (a.dtype() == node.dtype) return a;
      // A cast that loses nothing may be skipped: the next one sees the same value.
      if (a.op() == ExprOp::kCast && is_exact_cast(a.operand(0).dtype(), a.dtype())) {
        return cast(a.operand(0), node.dtype);
      }
      break;
    }
    case ExprOp::kBitcast:
      if (operands[0].dtype() == node.dtype) return operands[0];
      if (operands[0].op() == ExprOp::kBitcast) {
        return bitcast(operands[0].operand(0), node.dtype);
      }
      break;
    case ExprOp::kWhere:
    case ExprOp::kMasked:
      if (operands[1] == operands[2]) return operands[2];
      if (operands[0].op() == ExprOp::kConstant) {
        return operands[0].scalar().integer != 0 ? operands[1] : operands[2];
      }
      break;
    case ExprOp::kCheckIndex: {
      Expr a = operands[0];
      const auto size = extent.as_constant();
      if (a.op() == ExprOp::kConstant && size && a.scalar().integer >= 0 &&
          a.scalar().integer < *size) {
        return a;
      }
      if (a.op() == ExprOp::kIndexValue && prove_nonnegative(a.index()) &&
          prove_less(a.index(), extent)) {
        return a;
      }
      break;
    }
    case ExprOp::kCheck:
      if (operands[1].op() == ExprOp::kConstant && operands[1].scalar().integer != 0) {
        return operands[0];
      }
      break;
    case ExprOp::kCheckDivisor:
      if (operands[0].op() == ExprOp::kConstant && !operands[0].scalar().is_zero()) {
        return operands[0];
      }
      break;
    case ExprOp::kDiv:
      if (operands[1].op() == ExprOp::kConstant && operands[0].op() != ExprOp::kConstant) {
        const Scalar& divisor = operands[1].scalar();
        if (size_of(node.dtype) >= 4 && has_exact_reciprocal(divisor.real)) {
          return binary(ExprOp::kMul, operands[0],
                        constant(Scalar::of_double(node.dtype, 1.0 / divisor.real)));
        }
      }
      break;
    default:
      break;
  }

  if (const auto folded = fold_constants(op, node.dtype, operands)) return constant(*folded);

  const bool commutative = operands.size() == 2 && is_commutative(op, operands[0].dtype());
  Expr exchanged[2];
  if (commutative && operands[0].op() == ExprOp::kConstant) {
    exchanged[0] = operands[1];
    exchanged[1] = operands[0];
    operands = exchanged;
  }
  node.index = extent;
  node.number = static_cast<uint32_t>(fault);
  node.operands = operands.data();
  node.num_operands = static_cast<uint32_t>(operands.size());
  if (commutative) {
    if (const ExprNode* same = impl_->find_exchanged(node)) return Expr(same);
  }
  return impl_->intern(node);
}

// ---- walking ----

void visit_postorder(std::span<const Expr> roots, const std::function<void(Expr)>& visit) {
  struct Frame {
    Expr expr;
    size_t next = 0;
  };
  std::unordered_set<const ExprNode*> seen;
  std::vector<Frame> stack;
  for (Expr root : roots) {
    if (!seen.insert(root.node()).second) continue;
    stack.push_back({root});
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next == frame.expr.operands().size()) {
        const Expr done = frame.expr;
        stack.pop_back();
        visit(done);
        continue;
      }
      const Expr operand = frame.expr.operand(frame.next++);
      if (seen.insert(operand.node()).second) stack.push_back({operand});
    }
  }
}

std::vector<Index> collect_indices(std::span<const Expr> roots) {
  std::vector<Index> found;
  std::unordered_set<Index> seen;
  const auto add = [&](Index index) {
    if (seen.insert(index).second) found.push_back(index);
  };
  visit_postorder(roots, [&](Expr expr) {
    for (Index coordinate : expr.coordinates()) add(coordinate);
    if (expr.index().valid()) add(expr.index());
  });
  return found;
}

ExprRewriter::ExprRewriter(ExprContext& context, Substitution indices, OnLoad on_load)
    : context_(context), indices_(std::move(indices)), on_load_(std::move(on_load)) {}

Expr ExprRewriter::rewrite_node(Expr expr) {
  std::vector<Expr> operands;
  operands.reserve(expr.operands().size());
  for (Expr operand : expr.operands()) operands.push_back(memo_.at(operand));
  switch (expr.op()) {
    case ExprOp::kConstant:
      return expr;
    case ExprOp::kReduced:
      return context_.reduced(expr.number() + reductions_before_, expr.dtype());
    case ExprOp::kIndexValue:
      return context_.index_value(indices_.apply(expr.index()));
    case ExprOp::kLoad: {
      std::vector<Index> coordinates;
      coordinates.reserve(expr.coordinates().size());
      for (Index coordinate : expr.coordinates()) {
        coordinates.push_back(indices_.apply(coordinate));
      }
      if (on_load_) {
        const Expr replaced = on_load_(expr.buffer(), coordinates, operands, expr);
        if (replaced.valid()) return replaced;
      }
      return context_.load(expr.buffer(), expr.dtype(), std::move(coordinates),
                           std::move(operands));
    }
    case ExprOp::kCheckIndex:
      return context_.check_index(operands[0], indices_.apply(expr.index()), expr.fault());
    default:
      return context_.make(expr.op(), expr.dtype(), operands);
  }
}

Expr ExprRewriter::apply(Expr expression) {
  std::vector<Expr> stack = {expression};
  while (!stack.empty()) {
    const Expr top = stack.back();
    if (memo_.contains(top)) {
      stack.pop_back();
      continue;
    }
    const size_t before = stack.size();
    for (Expr operand : top.operands()) {
      if (!memo_.contains(operand)) stack.push_back(operand);
    }
    if (stack.size() != before) continue;
    stack.pop_back();
    memo_.emplace(top, rewrite_node(top));
  }
  return memo_.at(expression);
}

}  // namespace litz
