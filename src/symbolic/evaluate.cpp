#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "support/error.h"
#include "symbolic/node.h"

namespace litz {
namespace {

using ValueOf = std::function<int64_t(Index)>;

// Trees up to this size are walked recursively, without a memo.
constexpr uint32_t kSmallTree = 64;

template <class F>
int64_t compute(Index a, const ValueOf& value_of_symbol, F value_of) {
  const auto operands = a.operands();
  const auto divisor = [&] {
    const int64_t b = value_of(operands[1]);
    LITZ_CHECK(b > 0, "division by " + std::to_string(b) + " in " + to_string(a));
    return b;
  };
  switch (a.kind()) {
    case IndexKind::kConstant:
      return a.constant();
    case IndexKind::kSymbol:
      return value_of_symbol(a);
    case IndexKind::kSum: {
      int64_t result = a.sum_constant();
      for (const auto& [coefficient, term] : a.terms()) result += coefficient * value_of(term);
      return result;
    }
    case IndexKind::kProduct: {
      int64_t result = 1;
      for (Index factor : operands) result *= value_of(factor);
      return result;
    }
    case IndexKind::kFloorDiv:
      return floor_div_int(value_of(operands[0]), divisor());
    case IndexKind::kMod:
      return mod_int(value_of(operands[0]), divisor());
    case IndexKind::kMin: {
      int64_t result = value_of(operands[0]);
      for (Index operand : operands.subspan(1)) result = std::min(result, value_of(operand));
      return result;
    }
    case IndexKind::kMax: {
      int64_t result = value_of(operands[0]);
      for (Index operand : operands.subspan(1)) result = std::max(result, value_of(operand));
      return result;
    }
  }
  LITZ_CHECK(false, "unknown kind of index");
}

int64_t evaluate_small(Index a, const ValueOf& value_of_symbol) {
  return compute(a, value_of_symbol,
                 [&](Index child) { return evaluate_small(child, value_of_symbol); });
}

}  // namespace

int64_t evaluate(Index expression, const ValueOf& value_of) {
  if (expression.node()->tree_size <= kSmallTree) return evaluate_small(expression, value_of);
  std::unordered_map<Index, int64_t> memo;
  std::vector<Index> stack = {expression};
  while (!stack.empty()) {
    const Index at = stack.back();
    const size_t before = stack.size();
    const auto need = [&](Index child) {
      if (!memo.contains(child)) stack.push_back(child);
    };
    if (at.kind() == IndexKind::kSum) {
      for (const Term& term : at.terms()) need(term.second);
    } else {
      for (Index operand : at.operands()) need(operand);
    }
    if (stack.size() > before) continue;
    stack.pop_back();
    if (memo.contains(at)) continue;
    memo.emplace(at, compute(at, value_of, [&](Index child) { return memo.at(child); }));
  }
  return memo.at(expression);
}

}  // namespace litz
