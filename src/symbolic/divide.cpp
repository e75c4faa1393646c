#include "symbolic/divide.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "support/error.h"
#include "symbolic/monomial.h"
#include "symbolic/prove.h"
#include "symbolic/sum.h"

namespace litz {
namespace {

// The q with q*b <= a < (q+1)*b for all values of the symbols. Ranges decide for a constant b; for
// a symbolic one only q == 0 and q == -1 are tried.
std::optional<int64_t> constant_quotient(Index a, Index b) {
  const ValueRange range = a.range();
  if (const auto divisor = b.as_constant()) {
    if (range.lo == ValueRange::kMin || range.hi == ValueRange::kMax) return std::nullopt;
    const int64_t q = floor_div_int(range.lo, *divisor);
    if (q != floor_div_int(range.hi, *divisor)) return std::nullopt;
    return q;
  }
  if (a.is_constant(0)) return 0;
  if (range.hi >= 0 && prove_nonnegative_where(a, b) && prove_nonnegative_where(b - a - 1, b)) {
    return 0;
  }
  if (range.lo < 0 && prove_nonnegative_where(-a - 1, b) && prove_nonnegative_where(a + b, b)) {
    return -1;
  }
  return std::nullopt;
}

// a == g*high + low and b == g*b_high with 0 <= low < g and g > 1.
struct FactorSplit {
  Index g;
  Index high;
  Index low;
  Index b_high;
};

std::optional<FactorSplit> split_by_factor(Index a, Index b, const Monomial& g) {
  IndexContext& context = a.context();
  const Index factor = g.to_index(context);
  if (factor == b) return std::nullopt;
  SumBuilder high(context);
  SumBuilder low(context);
  const SumView view(a);
  for (const Term& term : view.terms()) {
    if (const auto part = divide(term, g)) {
      high.add(part->second, part->first);
    } else {
      low.add(term.second, term.first);
    }
  }
  low.add_constant(view.constant());
  const Index rest = low.finish();
  const auto q = constant_quotient(rest, factor);
  if (!q) return std::nullopt;
  return FactorSplit{factor, high.finish() + *q, rest - factor * *q, *exact_div(b, factor)};
}

// Tries the divisors that b has in common with the terms of a, largest first.
std::optional<FactorSplit> find_factor_split(Index a, Index b) {
  const Monomial of_b = content(b);
  if (of_b.is_one()) return std::nullopt;
  std::vector<Monomial> candidates;
  const SumView view(a);
  for (const Term& term : view.terms()) {
    Monomial g = common_divisor(of_b, term);
    if (!g.is_one() && std::find(candidates.begin(), candidates.end(), g) == candidates.end()) {
      candidates.push_back(std::move(g));
    }
  }
  std::sort(candidates.begin(), candidates.end(), [](const Monomial& x, const Monomial& y) {
    if (x.factors.size() != y.factors.size()) return x.factors.size() > y.factors.size();
    return x.coefficient > y.coefficient;
  });
  for (const Monomial& g : candidates) {
    if (auto split = split_by_factor(a, b, g)) return split;
  }
  return std::nullopt;
}

// ---- floor_div

Index divide_constants(Index a, Index b) {
  if (!a.is_constant() || !b.is_constant()) return Index();
  return a.context().constant(floor_div_int(a.constant(), b.constant()));
}

Index divide_multiples(Index a, Index b) {
  const Multiples split = split_multiples(a, b);
  if (split.quotient.is_constant(0)) return Index();
  return split.quotient + divide_by_positive(split.remainder, b);
}

Index divide_within_range(Index a, Index b) {
  const auto q = constant_quotient(a, b);
  return q ? a.context().constant(*q) : Index();
}

Index divide_common_factor(Index a, Index b) {
  const auto split = find_factor_split(a, b);
  return split ? divide_by_positive(split->high, split->b_high) : Index();
}

// The one floor_div(x, n) among the terms of a that has coefficient 1; null where there is none or
// more than one.
Index only_quotient(Index a) {
  const SumView view(a);
  Index quotient;
  for (const auto& [coefficient, term] : view.terms()) {
    if (coefficient != 1 || term.kind() != IndexKind::kFloorDiv) continue;
    if (quotient.valid()) return Index();
    quotient = term;
  }
  return quotient;
}

Index divide_quotient(Index a, Index b) {
  const Index quotient = only_quotient(a);
  if (!quotient.valid()) return Index();
  const Index n = quotient.operands()[1];
  return divide_by_positive(quotient.operands()[0] + (a - quotient) * n, n * b);
}

Index divide_remainder(Index a, Index b) {
  if (a.kind() != IndexKind::kMod) return Index();
  const auto n = exact_div(a.operands()[1], b);
  return n ? reduce_by_positive(divide_by_positive(a.operands()[0], b), *n) : Index();
}

constexpr DivisionRule kFloorDivRules[] = {
    {"floor_div(c, k) == the constant, for constants c and k", divide_constants},
    {"floor_div(q*b + r, b) == q + floor_div(r, b)", divide_multiples},
    {"floor_div(a, b) == q  where q*b <= a < (q+1)*b", divide_within_range},
    {"floor_div(g*a + r, g*b) == floor_div(a, b)  where 0 <= r < g", divide_common_factor},
    {"floor_div(floor_div(a, n) + y, b) == floor_div(a + n*y, n*b)", divide_quotient},
    {"floor_div(mod(a, n*b), b) == mod(floor_div(a, b), n)", divide_remainder},
};

// ---- mod

Index reduce_constants(Index a, Index b) {
  if (!a.is_constant() || !b.is_constant()) return Index();
  return a.context().constant(mod_int(a.constant(), b.constant()));
}

Index reduce_multiples(Index a, Index b) {
  const Multiples split = split_multiples(a, b);
  return split.quotient.is_constant(0) ? Index() : reduce_by_positive(split.remainder, b);
}

Index reduce_within_range(Index a, Index b) {
  const auto q = constant_quotient(a, b);
  return q ? a - b * *q : Index();
}

Index reduce_quotient(Index a, Index b) {
  if (!only_quotient(a).valid()) return Index();
  const Index q = divide_quotient(a, b);
  return q.is_constant() ? a - b * q : Index();
}

Index reduce_remainders(Index a, Index b) {
  const SumView view(a);
  for (const auto& [coefficient, term] : view.terms()) {
    if (term.kind() != IndexKind::kMod) continue;
    if (!prove_divisible(term.operands()[1] * coefficient, b)) continue;
    return reduce_by_positive(a + (term.operands()[0] - term) * coefficient, b);
  }
  return Index();
}

Index reduce_common_factor(Index a, Index b) {
  const auto split = find_factor_split(a, b);
  return split ? split->g * reduce_by_positive(split->high, split->b_high) + split->low : Index();
}

constexpr DivisionRule kModRules[] = {
    {"mod(c, k) == the constant, for constants c and k", reduce_constants},
    {"mod(q*b + r, b) == mod(r, b)", reduce_multiples},
    {"mod(a, b) == a - q*b  where q*b <= a < (q+1)*b", reduce_within_range},
    {"mod(floor_div(a, n) + y, b) == floor_div(a, n) + y - q*b  where floor_div(a + n*y, n*b) == q",
     reduce_quotient},
    {"mod(k*mod(a, n) + r, b) == mod(k*a + r, b)  where b divides k*n", reduce_remainders},
    {"mod(g*a + r, g*b) == g*mod(a, b) + r  where 0 <= r < g", reduce_common_factor},
};

Index simplify_division(std::span<const DivisionRule> rules, IndexKind kind, Index a, Index b) {
  LITZ_CHECK(b.range().hi > 0, "division by " + to_string(b) + ", which is not positive");
  if (const Index known = IndexBuilder::recall(kind, a, b); known.valid()) return known;
  Index result;
  for (const DivisionRule& rule : rules) {
    result = rule.apply(a, b);
    if (result.valid()) break;
  }
  if (!result.valid()) result = IndexBuilder::binary(kind, a, b);
  // Inside a proof fewer proofs are tried, so the result may be weaker.
  if (IndexBuilder::proof_depth(a.context()) == 0) IndexBuilder::remember(kind, a, b, result);
  return result;
}

void check_divisor(Index b) {
  LITZ_CHECK(may_divide(b), "division by " + to_string(b) + ", which may not be positive");
}

}  // namespace

std::span<const DivisionRule> floor_div_rules() { return kFloorDivRules; }
std::span<const DivisionRule> mod_rules() { return kModRules; }

bool may_divide(Index b) {
  const ValueRange range = b.range();
  if (b.is_constant()) return range.lo > 0;
  return range.hi > 0 && (range.lo >= 0 || prove_nonnegative(b));
}

Index divide_by_positive(Index a, Index b) {
  return simplify_division(floor_div_rules(), IndexKind::kFloorDiv, a, b);
}

Index reduce_by_positive(Index a, Index b) {
  return simplify_division(mod_rules(), IndexKind::kMod, a, b);
}

Index floor_div(Index a, Index b) {
  check_divisor(b);
  return divide_by_positive(a, b);
}
Index floor_div(Index a, int64_t b) { return floor_div(a, a.context().constant(b)); }

Index mod(Index a, Index b) {
  check_divisor(b);
  return reduce_by_positive(a, b);
}
Index mod(Index a, int64_t b) { return mod(a, a.context().constant(b)); }

Index ceil_div(Index a, Index b) { return floor_div(a + b - 1, b); }

}  // namespace litz
