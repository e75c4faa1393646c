#include "codegen/common/key_bounds.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "codegen/common/iteration_space.h"

namespace litz {
namespace {

constexpr int kMostDepth = 8;      // of sums of positions
constexpr int kMostVisited = 256;  // nodes of a score

bool is_truth(Expr e, bool truth) {
  return e.op() == ExprOp::kConstant && e.dtype() == DType::kBool &&
         (e.scalar().integer != 0) == truth;
}

bool is_wide_integer(DType dtype) { return dtype == DType::kInt64 || dtype == DType::kInt32; }

constexpr double kMostShort = 1 << 30;
constexpr double kRowsPastTheEnd = 256;

// Whether the sum, and what is computed on the way, is right in the type that positions have: 32
// bits where each of them fits.
bool is_safe(Index sum, double more = 0) {
  if (magnitude(sum) + more < kMostShort) return true;
  const std::vector<Index> symbols = free_symbols(sum);
  return std::any_of(symbols.begin(), symbols.end(),
                     [](Index symbol) { return magnitude(symbol) >= kMostShort; });
}

// An integer that positions come to.
std::optional<Index> position_of(Expr e, int depth = 0) {
  if (!is_wide_integer(e.dtype()) || depth > kMostDepth) return std::nullopt;
  switch (e.op()) {
    case ExprOp::kIndexValue:
      return e.index();
    case ExprOp::kConstant:
      if (std::abs(static_cast<double>(e.scalar().integer)) >= kMostShort) return std::nullopt;
      return e.context().indices().constant(e.scalar().integer);
    case ExprOp::kCast:
      return position_of(e.operand(0), depth + 1);
    case ExprOp::kAdd:
    case ExprOp::kSub: {
      const std::optional<Index> a = position_of(e.operand(0), depth + 1);
      const std::optional<Index> b = position_of(e.operand(1), depth + 1);
      if (!a || !b) return std::nullopt;
      return e.op() == ExprOp::kAdd ? *a + *b : *a - *b;
    }
    case ExprOp::kMul: {
      const std::optional<Index> a = position_of(e.operand(0), depth + 1);
      const std::optional<Index> b = position_of(e.operand(1), depth + 1);
      if (!a || !b || !b->is_constant() || !is_safe(*a)) return std::nullopt;
      return *a * b->constant();
    }
    default:
      return std::nullopt;
  }
}

std::optional<Index> short_position(Expr e) {
  std::optional<Index> position = position_of(e);
  if (position && !is_safe(*position)) position.reset();
  return position;
}

bool is_comparison(ExprOp op) {
  return op == ExprOp::kLt || op == ExprOp::kLe || op == ExprOp::kGt || op == ExprOp::kGe ||
         op == ExprOp::kEq || op == ExprOp::kNe;
}

class BoundFinder {
 public:
  BoundFinder(Index query, Index key) : query_(query), key_(key) {}

  // All bounds outside of which the score is -inf.
  void find(Expr score) {
    if (visited_++ > kMostVisited) return;
    switch (score.op()) {
      case ExprOp::kWhere:
        if (is_minus_infinity(score.operand(2))) {
          find_condition(score.operand(0), true);
          find(score.operand(1));
        } else if (is_minus_infinity(score.operand(1))) {
          find_condition(score.operand(0), false);
          find(score.operand(2));
        }
        return;
      case ExprOp::kAdd:
        find(score.operand(0));
        find(score.operand(1));
        return;
      case ExprOp::kCast:
        if (is_floating(score.operand(0).dtype())) find(score.operand(0));
        return;
      default:
        return;
    }
  }

  std::vector<KeyBound> take() { return std::move(bounds_); }

 private:
  // Bounds where the condition is `truth`.
  void find_condition(Expr e, bool truth) {
    if (visited_++ > kMostVisited) return;
    switch (e.op()) {
      case ExprOp::kBitAnd:
      case ExprOp::kBitOr:
        if (e.dtype() != DType::kBool || (e.op() == ExprOp::kBitAnd) != truth) return;
        find_condition(e.operand(0), truth);
        find_condition(e.operand(1), truth);
        return;
      case ExprOp::kBitNot:
        if (e.dtype() == DType::kBool) find_condition(e.operand(0), !truth);
        return;
      case ExprOp::kEq:
      case ExprOp::kNe:
        for (const bool constant : {false, true}) {
          if (is_truth(e.operand(1), constant))
            find_condition(e.operand(0), (truth == (e.op() == ExprOp::kEq)) == constant);
        }
        return;
      case ExprOp::kWhere:
        if (is_truth(e.operand(2), !truth)) {
          find_condition(e.operand(0), true);
          find_condition(e.operand(1), truth);
        } else if (is_truth(e.operand(1), !truth)) {
          find_condition(e.operand(0), false);
          find_condition(e.operand(2), truth);
        }
        return;
      case ExprOp::kLe:
        return truth ? add_less(e, 0, 1, 0) : add_less(e, 1, 0, -1);
      case ExprOp::kLt:
        return truth ? add_less(e, 0, 1, -1) : add_less(e, 1, 0, 0);
      case ExprOp::kGe:
        return truth ? add_less(e, 1, 0, 0) : add_less(e, 0, 1, -1);
      case ExprOp::kGt:
        return truth ? add_less(e, 1, 0, -1) : add_less(e, 0, 1, 0);
      default:
        return;
    }
  }

  // operand less <= operand more + constant
  void add_less(Expr e, size_t less, size_t more, int64_t constant) {
    const std::optional<Index> a = short_position(e.operand(less));
    const std::optional<Index> b = short_position(e.operand(more));
    if (!a || !b) return;
    // 0 <= room, which is linear in both positions.
    const Index room = *b - *a + constant;
    const std::optional<LinearIn> by_key = linear_in(room, key_);
    if (!by_key || !by_key->stride.is_constant()) return;
    const int64_t stride = by_key->stride.constant();
    if (stride != 1 && stride != -1) return;
    const std::optional<LinearIn> by_query = linear_in(by_key->rest, query_);
    if (!by_query || !by_query->stride.is_constant()) return;
    const int64_t step = by_query->stride.constant();
    if (!is_safe(room, kRowsPastTheEnd * std::abs(static_cast<double>(step)))) return;
    const Index first = by_query->rest;
    bounds_.push_back({stride < 0, stride < 0 ? first : -first, stride < 0 ? step : -step});
  }

  const Index query_;
  const Index key_;
  std::vector<KeyBound> bounds_;
  int visited_ = 0;
};

}  // namespace

bool is_minus_infinity(Expr e) {
  return e.op() == ExprOp::kConstant && is_floating(e.dtype()) && std::isinf(e.scalar().real) &&
         e.scalar().real < 0;
}

Expr compare_positions(Expr score) {
  ExprContext& exprs = score.context();
  std::unordered_map<Expr, Expr> changed;
  visit_postorder({&score, 1}, [&](Expr e) {
    if (e.operands().empty() || e.op() == ExprOp::kLoad) {
      changed.emplace(e, e);
      return;
    }
    if (is_comparison(e.op())) {
      const std::optional<Index> a = short_position(e.operand(0));
      const std::optional<Index> b = short_position(e.operand(1));
      if (a && b) {
        changed.emplace(e, exprs.binary(e.op(), exprs.index_value(*a), exprs.index_value(*b)));
        return;
      }
    }
    std::vector<Expr> operands;
    for (Expr operand : e.operands()) operands.push_back(changed.at(operand));
    const bool same = std::equal(operands.begin(), operands.end(), e.operands().begin());
    const bool has_extent = e.op() == ExprOp::kCheckIndex;
    changed.emplace(e,
                    same ? e
                         : exprs.make(e.op(), e.dtype(), operands, has_extent ? e.index() : Index(),
                                      has_extent ? e.fault() : IndexFault::kIndexError));
  });
  return changed.at(score);
}

std::vector<KeyBound> find_key_bounds(Expr score, Index query, Index key) {
  BoundFinder finder(query, key);
  finder.find(score);
  return finder.take();
}

}  // namespace litz
