#include "codegen/cpp/score_bounds.h"

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

}  // namespace

BoundedScore bounded_score(Expr score, Index query, Index key) {
  ExprContext& exprs = score.context();
  BoundedScore bounded;
  bounded.all = find_key_bounds(score, query, key);
  while (score.op() == ExprOp::kWhere && is_minus_infinity(score.operand(2))) {
    std::vector<Expr> conditions;
    collect_conditions(score.operand(0), conditions);
    Expr others;
    bool found = false;
    for (Expr condition : conditions) {
      // Of a single comparison the bound says all.
      std::vector<KeyBound> bounds;
      if (is_comparison(condition.op()))
        bounds = find_key_bounds(
            exprs.where(condition, exprs.constant(DType::kFloat32, 0), score.operand(2)), query,
            key);
      if (bounds.size() == 1 && bounds[0].is_upper) {
        bounded.upper.push_back(bounds[0]);
        found = true;
      } else {
        others = others.valid() ? exprs.binary(ExprOp::kBitAnd, others, condition) : condition;
      }
    }
    if (!found) break;
    score =
        others.valid() ? exprs.where(others, score.operand(1), score.operand(2)) : score.operand(1);
    if (others.valid()) break;
  }
  bounded.rest = compare_positions(score);
  return bounded;
}

}  // namespace litz
