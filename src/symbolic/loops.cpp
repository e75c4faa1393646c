#include "symbolic/loops.h"

#include <algorithm>
#include <unordered_set>

#include "symbolic/divide.h"
#include "symbolic/monomial.h"
#include "symbolic/node.h"

namespace litz {
namespace {

// Variables made on the way to the result have numbers from here on, so that they are not taken for
// a loop of the caller.
constexpr uint32_t kFirstTemporary = 1u << 30;

constexpr int kMaxRounds = 16;

// Calls f for every FloorDiv and Mod in the expressions that depends on `variable`.
template <class F>
void for_each_division(std::span<const Index> expressions, Index variable, F f) {
  const uint64_t bits = variable.node()->symbols;
  std::vector<Index> stack(expressions.begin(), expressions.end());
  std::unordered_set<Index> seen;
  while (!stack.empty()) {
    const Index at = stack.back();
    stack.pop_back();
    if (!at.node()->divides || (at.node()->symbols & bits) == 0 || !seen.insert(at).second)
      continue;
    if (at.kind() == IndexKind::kFloorDiv || at.kind() == IndexKind::kMod) {
      if (at.depends_on(variable)) f(at);
    }
    if (at.kind() == IndexKind::kSum) {
      for (const Term& term : at.terms()) stack.push_back(term.second);
    } else {
      stack.insert(stack.end(), at.operands().begin(), at.operands().end());
    }
  }
}

size_t count_divisions(std::span<const Index> expressions, std::span<const Index> variables) {
  size_t count = 0;
  for (Index variable : variables) {
    for_each_division(expressions, variable, [&](Index) { ++count; });
  }
  return count;
}

// A division of a by b is linear again once `variable` is split at every b / |stride|.
std::optional<Index> cut_of(Index a, Index b, Index variable) {
  const auto linear = linear_in(a, variable);
  if (!linear || linear->stride.is_constant(0)) return std::nullopt;
  std::optional<Index> cut = exact_div(b, linear->stride);
  if (cut && cut->range().hi <= 0) cut = -*cut;
  return cut && may_divide(*cut) ? cut : std::nullopt;
}

void collect_cuts(Index division, Index variable, std::vector<Index>& cuts) {
  const Index a = division.operands()[0];
  const Index b = division.operands()[1];
  if (const auto cut = cut_of(a, b, variable)) {
    cuts.push_back(*cut);
    return;
  }
  // mod(y + floor_div(x, n), b) is a digit of x: it ends at n*b.
  const SumView view(a);
  for (const auto& [coefficient, term] : view.terms()) {
    if (term.kind() != IndexKind::kFloorDiv) continue;
    const auto cut = cut_of(term.operands()[0], term.operands()[1] * b, variable);
    if (cut) cuts.push_back(*cut);
  }
}

size_t degree(Index a) {
  const auto monomial = as_monomial(a);
  return monomial ? monomial->factors.size() : 1;
}

// Quotients of neighbours in 1 | cuts... | extent, outermost first; empty where a division leaves a
// remainder.
std::vector<Index> factors_of_chain(std::vector<Index> cuts, Index extent) {
  std::erase_if(cuts, [&](Index cut) { return cut.is_constant(1) || cut == extent; });
  std::sort(cuts.begin(), cuts.end(), [](Index x, Index y) {
    if (degree(x) != degree(y)) return degree(x) < degree(y);
    if (x.is_constant() && y.is_constant()) return x.constant() < y.constant();
    return x.id() < y.id();
  });
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  if (cuts.empty()) return {};
  std::vector<Index> factors;
  Index below = extent.context().constant(1);
  cuts.push_back(extent);
  for (Index cut : cuts) {
    const auto factor = exact_div(cut, below);
    if (!factor || factor->is_constant(1) || !may_divide(*factor)) return {};
    factors.push_back(*factor);
    below = cut;
  }
  std::reverse(factors.begin(), factors.end());
  return factors;
}

// The loop nest on its way to the result.
struct Nest {
  struct Loop {
    Index variable;
    size_t group;  // boundaries at or before it
  };
  IndexContext& context;
  std::vector<Loop> loops;
  std::vector<Index> expressions;
  std::vector<std::pair<Index, Index>> replacements;
  uint32_t next_temporary = kFirstTemporary;

  Index new_variable(Index extent) { return context.variable(next_temporary++, extent); }

  void rewrite(Substitution& substitution) {
    for (Index& expression : expressions) expression = substitution.apply(expression);
    for (auto& [old, value] : replacements) value = substitution.apply(value);
  }
};

bool drop_unit_loops(Nest& nest) {
  Substitution substitution;
  std::erase_if(nest.loops, [&](const Nest::Loop& loop) {
    if (!loop.variable.extent().is_constant(1)) return false;
    substitution.set(loop.variable, nest.context.constant(0));
    return true;
  });
  if (substitution.empty()) return false;
  nest.rewrite(substitution);
  return true;
}

bool split_loops(Nest& nest) {
  Substitution substitution;
  std::vector<Nest::Loop> loops;
  for (const Nest::Loop& loop : nest.loops) {
    const std::vector<Index> factors = find_split(loop.variable, nest.expressions);
    if (factors.size() == 1) {
      loops.push_back(loop);
      continue;
    }
    std::vector<Index> digits;
    for (Index factor : factors) {
      digits.push_back(nest.new_variable(factor));
      loops.push_back({digits.back(), loop.group});
    }
    substitution.set(loop.variable,
                     dot(nest.context, digits, contiguous_strides(nest.context, factors)));
  }
  if (substitution.empty()) return false;
  nest.loops = std::move(loops);
  nest.rewrite(substitution);
  return true;
}

// Merges disjoint pairs of neighbours, innermost first.
bool merge_loops(Nest& nest) {
  Substitution substitution;
  std::vector<Nest::Loop> reversed;
  for (size_t i = nest.loops.size(); i-- > 0;) {
    const Nest::Loop inner = nest.loops[i];
    if (i == 0 || nest.loops[i - 1].group != inner.group ||
        inner.variable.extent().is_constant(0) ||
        !can_merge(nest.loops[i - 1].variable, inner.variable, nest.expressions)) {
      reversed.push_back(inner);
      continue;
    }
    const Index outer = nest.loops[--i].variable;
    const Index size = inner.variable.extent();
    const Index merged = nest.new_variable(outer.extent() * size);
    substitution.set(outer, floor_div(merged, size));
    substitution.set(inner.variable, mod(merged, size));
    reversed.push_back({merged, inner.group});
  }
  if (substitution.empty()) return false;
  nest.loops.assign(reversed.rbegin(), reversed.rend());
  nest.rewrite(substitution);
  return true;
}

}  // namespace

std::vector<Index> find_split(Index variable, std::span<const Index> expressions) {
  const Index extent = variable.extent();
  const std::vector<Index> whole = {extent};
  std::vector<Index> cuts;
  for_each_division(expressions, variable,
                    [&](Index division) { collect_cuts(division, variable, cuts); });
  const std::vector<Index> factors = factors_of_chain(std::move(cuts), extent);
  if (factors.empty()) return whole;

  // Whether the split helps is seen by doing it.
  IndexContext& context = variable.context();
  std::vector<Index> digits;
  for (Index factor : factors) {
    digits.push_back(
        context.variable(kFirstTemporary - 1 - static_cast<uint32_t>(digits.size()), factor));
  }
  Substitution substitution;
  substitution.set(variable, dot(context, digits, contiguous_strides(context, factors)));
  std::vector<Index> after;
  for (Index expression : expressions) {
    if (expression.node()->divides) after.push_back(substitution.apply(expression));
  }
  const bool helps = count_divisions(after, digits) < count_divisions(expressions, {&variable, 1});
  return helps ? factors : whole;
}

bool can_merge(Index outer, Index inner, std::span<const Index> expressions) {
  const Index size = inner.extent();
  return std::all_of(expressions.begin(), expressions.end(), [&](Index expression) {
    const auto of_outer = linear_in(expression, outer);
    const auto of_inner = linear_in(expression, inner);
    return of_outer && of_inner && of_outer->stride == of_inner->stride * size;
  });
}

LoopRewrite simplify_loops(IndexContext& context, std::span<const Index> variables,
                           std::span<const size_t> boundaries, std::span<const Index> expressions,
                           std::vector<size_t>* new_boundaries) {
  Nest nest = {context, {}, {expressions.begin(), expressions.end()}, {}};
  for (size_t i = 0; i < variables.size(); ++i) {
    const auto before = [&](size_t boundary) { return boundary <= i; };
    const auto group = std::count_if(boundaries.begin(), boundaries.end(), before);
    nest.loops.push_back({variables[i], static_cast<size_t>(group)});
    nest.replacements.emplace_back(variables[i], variables[i]);
  }

  // A split removes divisions and a merge of loops adds none as far as the simplifier puts the
  // parts together again; the limit is for the case that it does not.
  bool again = true;
  for (int round = 0; again && round < kMaxRounds; ++round) {
    again = drop_unit_loops(nest);
    again = split_loops(nest) || again;
    again = merge_loops(nest) || again;
  }

  LoopRewrite result;
  Substitution renumbering;
  for (const Nest::Loop& loop : nest.loops) {
    const auto number = static_cast<uint32_t>(result.variables.size());
    result.variables.push_back(context.variable(number, loop.variable.extent()));
    renumbering.set(loop.variable, result.variables.back());
  }
  for (auto& [old, value] : nest.replacements) {
    result.replacements.emplace_back(old, renumbering.apply(value));
  }
  if (new_boundaries != nullptr) {
    new_boundaries->clear();
    for (size_t i = 0; i < boundaries.size(); ++i) {
      // Groups are numbered by the boundaries in ascending order.
      const auto before = [&](const Nest::Loop& loop) { return loop.group <= i; };
      const auto position = std::count_if(nest.loops.begin(), nest.loops.end(), before);
      new_boundaries->push_back(static_cast<size_t>(position));
    }
  }
  return result;
}

void reorder_loops(IndexContext& context, LoopRewrite& rewrite, std::span<const size_t> order) {
  std::vector<Index> renumbered(order.size());
  Substitution renumber;
  for (size_t i = 0; i < order.size(); ++i) {
    const Index old = rewrite.variables[order[i]];
    renumbered[i] = context.variable(static_cast<uint32_t>(i), old.extent());
    renumber.set(old, renumbered[i]);
  }
  for (auto& [variable, value] : rewrite.replacements) value = renumber.apply(value);
  rewrite.variables = std::move(renumbered);
}

}  // namespace litz
