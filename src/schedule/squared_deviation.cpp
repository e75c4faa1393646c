#include "schedule/squared_deviation.h"

#include <cmath>

namespace litz {
namespace {

// s / n, or s * (1 / n) where that is exact.
std::optional<SquaredDeviation> mean(Expr m) {
  if (m.op() != ExprOp::kDiv && m.op() != ExprOp::kMul) return std::nullopt;
  const Expr by = m.operand(1);
  if (by.op() != ExprOp::kConstant || !is_floating(by.dtype())) return std::nullopt;
  const double count = m.op() == ExprOp::kDiv ? by.scalar().real : 1.0 / by.scalar().real;
  // Beyond it the count is not what the division is by.
  constexpr double kMostExact = 1 << 24;
  if (!(count >= 1 && count <= kMostExact && count == std::floor(count))) return std::nullopt;
  return SquaredDeviation{{}, m.operand(0), static_cast<int64_t>(count)};
}

}  // namespace

std::optional<SquaredDeviation> squared_deviation(Expr e) {
  if (e.op() != ExprOp::kMul || e.operand(0) != e.operand(1)) return std::nullopt;
  if (e.dtype() != DType::kFloat32 && e.dtype() != DType::kFloat64) return std::nullopt;
  const Expr difference = e.operand(0);
  if (difference.op() != ExprOp::kSub) return std::nullopt;
  std::optional<SquaredDeviation> found = mean(difference.operand(1));
  if (found) found->x = difference.operand(0);
  return found;
}

}  // namespace litz
