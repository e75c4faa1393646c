#include "symbolic/monomial.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "symbolic/sum.h"

namespace litz {
namespace {

size_t count_parts(Index a) {
  const SumView view(a);
  return view.terms().size() + (view.constant() != 0 ? 1 : 0);
}

// Graded lexicographic order: the larger term comes first. It is compatible with multiplication, so
// the leading term of a product is the product of the leading terms.
bool leads(Index a, Index b) {
  const auto x = factors_of(a);
  const auto y = factors_of(b);
  if (x.size() != y.size()) return x.size() > y.size();
  return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end(), IndexLess());
}

Term leading_term(const SumView& a) {
  return *std::min_element(a.terms().begin(), a.terms().end(),
                           [](const Term& x, const Term& y) { return leads(x.second, y.second); });
}

// Division by a monomial, term by term.
Multiples split_by_monomial(Index a, const Monomial& b) {
  const SumView view(a);
  const auto divisible = [&](const Term& term) { return divide(term, b).has_value(); };
  if (view.constant() == 0 && std::none_of(view.terms().begin(), view.terms().end(), divisible)) {
    return {a.context().constant(0), a};
  }
  SumBuilder quotient(a.context());
  SumBuilder remainder(a.context());
  for (const Term& term : view.terms()) {
    if (const auto part = divide(term, b)) {
      quotient.add(part->second, part->first);
    } else {
      remainder.add(term.second, term.first);
    }
  }
  if (b.factors.empty()) {
    quotient.add_constant(floor_div_int(view.constant(), b.coefficient));
    remainder.add_constant(mod_int(view.constant(), b.coefficient));
  } else {
    remainder.add_constant(view.constant());
  }
  return {quotient.finish(), remainder.finish()};
}

// Division by a sum: takes a multiple out wherever that leaves fewer terms.
Multiples split_by_sum(Index a, Index b) {
  const Monomial lead = as_monomial(leading_term(SumView(b)));
  Multiples result = {a.context().constant(0), a};
  for (bool again = true; again;) {
    again = false;
    const SumView view(result.remainder);
    for (const Term& term : view.terms()) {
      const auto part = divide(term, lead);
      if (!part) continue;
      const Index multiple = part->second * part->first;
      const Index rest = result.remainder - multiple * b;
      if (count_parts(rest) >= count_parts(result.remainder)) continue;
      result = {result.quotient + multiple, rest};
      again = true;
      break;
    }
  }
  return result;
}

// Long division by a sum in a monomial order; nullopt where a remainder is left.
std::optional<Index> exact_div_by_sum(Index a, Index b) {
  const Monomial lead = as_monomial(leading_term(SumView(b)));
  Index quotient = a.context().constant(0);
  constexpr int kMaxSteps = 64;
  for (int step = 0; step < kMaxSteps && !a.is_constant(); ++step) {
    const auto part = divide(leading_term(SumView(a)), lead);
    if (!part) return std::nullopt;
    const Index multiple = part->second * part->first;
    quotient = quotient + multiple;
    a = a - multiple * b;
  }
  if (!a.is_constant(0)) return std::nullopt;
  return quotient;
}

}  // namespace

Index Monomial::to_index(IndexContext& context) const {
  return IndexBuilder::product(context, factors) * coefficient;
}

Monomial as_monomial(const Term& term) {
  const auto factors = factors_of(term.second);
  return {term.first, {factors.begin(), factors.end()}};
}

std::optional<Monomial> as_monomial(Index a) {
  const SumView view(a);
  if (view.terms().empty()) return Monomial{view.constant(), {}};
  if (view.terms().size() > 1 || view.constant() != 0) return std::nullopt;
  return as_monomial(view.terms()[0]);
}

std::optional<Term> divide(const Term& term, const Monomial& b) {
  if (b.coefficient == 0 || term.first % b.coefficient != 0) return std::nullopt;
  const int64_t coefficient = term.first / b.coefficient;
  if (b.factors.empty()) return Term(coefficient, term.second);
  const auto factors = factors_of(term.second);
  if (!std::includes(factors.begin(), factors.end(), b.factors.begin(), b.factors.end(),
                     IndexLess())) {
    return std::nullopt;
  }
  std::vector<Index> left;
  std::set_difference(factors.begin(), factors.end(), b.factors.begin(), b.factors.end(),
                      std::back_inserter(left), IndexLess());
  return Term(coefficient, IndexBuilder::product(term.second.context(), left));
}

Monomial common_divisor(const Monomial& a, const Term& term) {
  Monomial result = {std::gcd(a.coefficient, term.first), {}};
  if (a.factors.empty()) return result;
  const auto factors = factors_of(term.second);
  std::set_intersection(a.factors.begin(), a.factors.end(), factors.begin(), factors.end(),
                        std::back_inserter(result.factors), IndexLess());
  return result;
}

Monomial content(Index a) {
  const SumView view(a);
  if (view.terms().empty()) return {std::abs(view.constant()), {}};
  Monomial result = as_monomial(view.terms()[0]);
  result.coefficient = std::abs(result.coefficient);
  for (const Term& term : view.terms().subspan(1)) result = common_divisor(result, term);
  if (view.constant() != 0) result = {std::gcd(result.coefficient, view.constant()), {}};
  return result;
}

Multiples split_multiples(Index a, Index b) {
  if (const auto monomial = as_monomial(b)) return split_by_monomial(a, *monomial);
  return split_by_sum(a, b);
}

std::optional<Index> exact_div(Index a, Index divisor) {
  if (divisor.is_constant(0)) return std::nullopt;
  if (divisor.is_constant(1)) return a;
  if (a == divisor) return a.context().constant(1);
  const auto monomial = as_monomial(divisor);
  if (!monomial) return exact_div_by_sum(a, divisor);
  SumBuilder quotient(a.context());
  const SumView view(a);
  for (const Term& term : view.terms()) {
    const auto part = divide(term, *monomial);
    if (!part) return std::nullopt;
    quotient.add(part->second, part->first);
  }
  if (view.constant() != 0) {
    if (!monomial->factors.empty() || view.constant() % monomial->coefficient != 0) {
      return std::nullopt;
    }
    quotient.add_constant(view.constant() / monomial->coefficient);
  }
  return quotient.finish();
}

bool prove_divisible(Index a, Index divisor) { return exact_div(a, divisor).has_value(); }

}  // namespace litz
