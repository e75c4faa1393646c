#include "symbolic/sum.h"

#include <algorithm>

#include "symbolic/divide.h"
#include "symbolic/monomial.h"

namespace litz {
namespace {

bool by_id(const Term& a, const Term& b) { return a.second.id() < b.second.id(); }

// The first factor of this kind in a term, and the rest of the term with its coefficient.
struct Factored {
  Index factor;
  Index cofactor;
};

std::optional<Factored> take_factor(const Term& term, IndexKind kind) {
  Monomial monomial = as_monomial(term);
  const auto at = std::find_if(monomial.factors.begin(), monomial.factors.end(),
                               [&](Index factor) { return factor.kind() == kind; });
  if (at == monomial.factors.end()) return std::nullopt;
  const Index factor = *at;
  monomial.factors.erase(at);
  return Factored{factor, monomial.to_index(factor.context())};
}

std::vector<Factored> take_factors(const SumBuilder& sum, IndexKind kind) {
  std::vector<Factored> result;
  for (const Term& term : sum.terms()) {
    if (auto factored = take_factor(term, kind)) result.push_back(*factored);
  }
  return result;
}

bool join_quotient_and_remainder(SumBuilder& sum) {
  for (const auto& [mod_ab, k] : take_factors(sum, IndexKind::kMod)) {
    const Index a = mod_ab.operands()[0];
    const Index b = mod_ab.operands()[1];
    const Index multiple = divide_by_positive(a, b) * b * k;
    // A b of several terms may share terms of the sum with another multiple.
    if (!(as_monomial(b) ? sum.includes(multiple) : sum.covers(multiple))) continue;
    sum.replace({multiple, mod_ab * k}, a * k);
    return true;
  }
  return false;
}

bool join_digits(SumBuilder& sum) {
  const std::vector<Factored> digits = take_factors(sum, IndexKind::kMod);
  if (digits.size() < 2) return false;
  for (const auto& [low, k] : digits) {
    const Index a = low.operands()[0];
    const Index n = low.operands()[1];
    for (const auto& [high, k_n] : digits) {
      if (high == low || k_n != k * n) continue;
      // The upper digit is mod(y + floor_div(a, n), m): the number is n*y + a.
      const Index upper = high.operands()[0];
      const Index quotient = divide_by_positive(a, n);
      if (quotient.kind() != IndexKind::kFloorDiv) continue;
      const SumView view(upper);
      if (std::find(view.terms().begin(), view.terms().end(), Term(1, quotient)) ==
          view.terms().end()) {
        continue;
      }
      const Index number = n * (upper - quotient) + a;
      sum.replace({low * k, high * k_n}, reduce_by_positive(number, n * high.operands()[1]) * k);
      return true;
    }
  }
  return false;
}

bool subtract_quotient(SumBuilder& sum) {
  for (const auto& [quotient, cofactor] : take_factors(sum, IndexKind::kFloorDiv)) {
    const Index a = quotient.operands()[0];
    const Index b = quotient.operands()[1];
    const auto k = exact_div(-cofactor, b);
    if (!k || !sum.includes(a * *k)) continue;
    sum.replace({a * *k, quotient * cofactor}, reduce_by_positive(a, b) * *k);
    return true;
  }
  return false;
}

constexpr SumRule kSumRules[] = {
    {"k*b*floor_div(a, b) + k*mod(a, b) == k*a", join_quotient_and_remainder},
    {"k*mod(a, n) + k*n*mod(y + floor_div(a, n), m) == k*mod(n*y + a, n*m)", join_digits},
    {"k*a - k*b*floor_div(a, b) == k*mod(a, b)", subtract_quotient},
};

}  // namespace

std::span<const SumRule> sum_rules() { return kSumRules; }

IndexTooLarge::IndexTooLarge()
    : UserError("the sizes of this graph lead to an index that does not fit 64 bits") {}

int64_t add_checked(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_add_overflow(a, b, &result)) throw IndexTooLarge();
  return result;
}

int64_t multiply_checked(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) throw IndexTooLarge();
  return result;
}

void SumBuilder::add(Index a, int64_t scale) {
  const SumView view(a);
  add_constant(multiply_checked(view.constant(), scale));
  for (const auto& [coefficient, term] : view.terms()) {
    terms_.emplace_back(multiply_checked(coefficient, scale), term);
  }
}

void SumBuilder::merge() {
  std::sort(terms_.begin(), terms_.end(), by_id);
  size_t kept = 0;
  for (size_t i = 0; i < terms_.size();) {
    Term merged = terms_[i];
    for (++i; i < terms_.size() && terms_[i].second == merged.second; ++i) {
      merged.first = add_checked(merged.first, terms_[i].first);
    }
    if (merged.first != 0) terms_[kept++] = merged;
  }
  terms_.resize(kept);
}

int64_t SumBuilder::coefficient(Index term) const {
  const auto at = std::lower_bound(terms_.begin(), terms_.end(), Term(0, term), by_id);
  return at != terms_.end() && at->second == term ? at->first : 0;
}

bool SumBuilder::includes(Index a) const {
  const SumView view(a);
  return !view.terms().empty() &&
         std::all_of(view.terms().begin(), view.terms().end(),
                     [&](const Term& term) { return coefficient(term.second) == term.first; });
}

bool SumBuilder::covers(Index a) const {
  const SumView view(a);
  return std::all_of(view.terms().begin(), view.terms().end(), [&](const Term& term) {
    const int64_t have = coefficient(term.second);
    return term.first > 0 ? have >= term.first : have <= term.first;
  });
}

void SumBuilder::replace(std::initializer_list<Index> old, Index by) {
  for (Index each : old) add(each, -1);
  add(by, 1);
  merge();
}

Index SumBuilder::finish() {
  merge();
  const auto matters = [](const Term& term) {
    return term.second.node()->floor_div_factor || term.second.node()->mod_factor;
  };
  // Each application takes a FloorDiv or a Mod away or joins two, so few are possible; the limit
  // keeps a mistake in that from hanging the compiler.
  constexpr int kMaxApplications = 256;
  bool again = true;
  for (int i = 0; again && i < kMaxApplications; ++i) {
    if (std::none_of(terms_.begin(), terms_.end(), matters)) break;
    again = false;
    for (const SumRule& rule : sum_rules()) again = again || rule.apply(*this);
  }
  return intern();
}

}  // namespace litz
