#include <algorithm>
#include <unordered_set>

#include "support/error.h"
#include "symbolic/divide.h"
#include "symbolic/node.h"
#include "symbolic/sum.h"

namespace litz {
namespace {

template <class F>
void for_each_child(Index a, F f) {
  if (a.kind() == IndexKind::kSum) {
    for (const Term& term : a.terms()) f(term.second);
  } else {
    for (Index operand : a.operands()) f(operand);
  }
}

// The node again, with its children looked up in `value_of`.
template <class F>
Index rebuild(Index a, F value_of) {
  const auto operands = a.operands();
  switch (a.kind()) {
    case IndexKind::kConstant:
    case IndexKind::kSymbol:
      return a;
    case IndexKind::kSum: {
      SumBuilder sum(a.context());
      for (const auto& [coefficient, term] : a.terms()) sum.add(value_of(term), coefficient);
      sum.add_constant(a.sum_constant());
      return sum.finish();
    }
    case IndexKind::kProduct: {
      Index result = value_of(operands[0]);
      for (Index factor : operands.subspan(1)) result = result * value_of(factor);
      return result;
    }
    case IndexKind::kFloorDiv:
      return divide_by_positive(value_of(operands[0]), value_of(operands[1]));
    case IndexKind::kMod:
      return reduce_by_positive(value_of(operands[0]), value_of(operands[1]));
    case IndexKind::kMin: {
      Index result = value_of(operands[0]);
      for (Index operand : operands.subspan(1)) result = min(result, value_of(operand));
      return result;
    }
    case IndexKind::kMax: {
      Index result = value_of(operands[0]);
      for (Index operand : operands.subspan(1)) result = max(result, value_of(operand));
      return result;
    }
  }
  return a;
}

}  // namespace

void Substitution::set(Index symbol, Index value) {
  LITZ_CHECK(symbol.is_symbol(), "only symbols can be replaced, not " + to_string(symbol));
  map_[symbol] = value;
  symbols_ |= symbol.node()->symbols;
  memo_.clear();
}

Index Substitution::apply(Index expression) {
  const auto untouched = [&](Index a) { return (a.node()->symbols & symbols_) == 0; };
  const auto find = [&](Index a) -> Index {
    if (untouched(a)) return a;
    const auto& table = a.is_symbol() ? map_ : memo_;
    const auto at = table.find(a);
    if (at != table.end()) return at->second;
    return a.is_symbol() ? a : Index();
  };
  if (const Index known = find(expression); known.valid()) return known;

  std::vector<Index> stack = {expression};
  while (!stack.empty()) {
    const Index at = stack.back();
    const size_t before = stack.size();
    for_each_child(at, [&](Index child) {
      if (!find(child).valid()) stack.push_back(child);
    });
    if (stack.size() > before) continue;
    stack.pop_back();
    if (!memo_.contains(at)) memo_.emplace(at, rebuild(at, find));
  }
  return memo_.at(expression);
}

Index substitute(Index expression, std::span<const std::pair<Index, Index>> replacements) {
  Substitution substitution;
  for (const auto& [symbol, value] : replacements) substitution.set(symbol, value);
  return substitution.apply(expression);
}

std::vector<Index> free_symbols(std::span<const Index> expressions) {
  std::vector<Index> symbols;
  std::vector<Index> stack(expressions.begin(), expressions.end());
  std::unordered_set<Index> seen;
  while (!stack.empty()) {
    const Index at = stack.back();
    stack.pop_back();
    if (at.node()->symbols == 0 || !seen.insert(at).second) continue;
    if (at.is_symbol()) symbols.push_back(at);
    for_each_child(at, [&](Index child) { stack.push_back(child); });
  }
  std::sort(symbols.begin(), symbols.end(), IndexLess());
  return symbols;
}

std::vector<Index> free_symbols(Index expression) { return free_symbols({&expression, 1}); }

std::optional<LinearIn> linear_in(Index expression, Index symbol) {
  IndexContext& context = expression.context();
  if (!expression.depends_on(symbol)) return LinearIn{context.constant(0), expression};
  SumBuilder stride(context);
  SumBuilder rest(context);
  const SumView view(expression);
  rest.add_constant(view.constant());
  for (const auto& [coefficient, term] : view.terms()) {
    if (!term.depends_on(symbol)) {
      rest.add(term, coefficient);
      continue;
    }
    std::vector<Index> others;
    for (Index factor : factors_of(term)) {
      if (factor != symbol) others.push_back(factor);
    }
    const bool once = others.size() + 1 == factors_of(term).size();
    const auto varies = [&](Index factor) { return factor.depends_on(symbol); };
    if (!once || std::any_of(others.begin(), others.end(), varies)) return std::nullopt;
    stride.add(IndexBuilder::product(context, others), coefficient);
  }
  return LinearIn{stride.finish(), rest.finish()};
}

}  // namespace litz
