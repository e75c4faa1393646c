#include "codegen/cpp/score_bounds.h"

#include <limits>
#include <optional>

namespace litz {
namespace {

void collect_conditions(Expr e, std::vector<Expr>& conditions) {
  if (e.op() == ExprOp::kBitAnd) {
    collect_conditions(e.operand(0), conditions);
    collect_conditions(e.operand(1), conditions);
  } else {
    conditions.push_back(e);
  }
}

bool is_comparison(ExprOp op) {
  return op == ExprOp::kLt || op == ExprOp::kLe || op == ExprOp::kGt || op == ExprOp::kGe;
}

bool is_true(Expr e) { return e.op() == ExprOp::kConstant && e.scalar().integer != 0; }

bool is_zero(Expr e) {
  return e.op() == ExprOp::kConstant && is_floating(e.dtype()) && e.scalar().real == 0;
}

// Of a term that is 0 where a condition holds, else -inf.
std::optional<Expr> condition_of_term(Expr e) {
  while (e.op() == ExprOp::kCast && is_floating(e.operand(0).dtype())) e = e.operand(0);
  if (e.op() != ExprOp::kWhere || !is_zero(e.operand(1)) || !is_minus_infinity(e.operand(2)))
    return std::nullopt;
  return e.operand(0);
}

struct MaskedScore {
  Expr condition;
  Expr score;
};

std::optional<MaskedScore> masked_score(Expr e) {
  if (e.op() == ExprOp::kWhere && is_minus_infinity(e.operand(2)))
    return MaskedScore{e.operand(0), e.operand(1)};
  if (e.op() != ExprOp::kAdd) return std::nullopt;
  for (const size_t side : {1, 0}) {
    if (const std::optional<Expr> condition = condition_of_term(e.operand(side)))
      return MaskedScore{*condition, e.operand(1 - side)};
  }
  return std::nullopt;
}

}  // namespace

BoundedScore bounded_score(Expr score, Index query, Index key) {
  ExprContext& exprs = score.context();
  BoundedScore bounded;
  bounded.all = find_key_bounds(score, query, key);
  const Expr infinity = exprs.constant(DType::kFloat32, -std::numeric_limits<double>::infinity());
  std::vector<Expr> conditions;
  while (const std::optional<MaskedScore> masked = masked_score(score)) {
    collect_conditions(masked->condition, conditions);
    score = masked->score;
  }
  Expr others;
  for (Expr condition : conditions) {
    if (is_true(condition)) continue;
    // Of a single comparison the bound says all.
    std::vector<KeyBound> bounds;
    if (is_comparison(condition.op()))
      bounds = find_key_bounds(exprs.where(condition, exprs.constant(DType::kFloat32, 0), infinity),
                               query, key);
    if (bounds.size() == 1 && bounds[0].is_upper) {
      bounded.upper.push_back(bounds[0]);
    } else {
      others = others.valid() ? exprs.binary(ExprOp::kBitAnd, others, condition) : condition;
    }
  }
  bounded.rest = compare_positions(others.valid() ? exprs.where(others, score, infinity) : score);
  return bounded;
}

}  // namespace litz
