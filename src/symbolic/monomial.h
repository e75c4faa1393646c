// Monomials (a coefficient times factors) and the polynomial division that rests on them. Private
// to this room.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "symbolic/node.h"

namespace litz {

struct Monomial {
  int64_t coefficient = 1;
  std::vector<Index> factors;  // in id order

  bool is_one() const { return coefficient == 1 && factors.empty(); }
  Index to_index(IndexContext& context) const;
  friend bool operator==(const Monomial&, const Monomial&) = default;
};

Monomial as_monomial(const Term& term);

// nullopt for a sum of several terms, or of a term and a constant.
std::optional<Monomial> as_monomial(Index a);

// term / b where b divides it factor by factor; the quotient of equal factors is the constant 1.
std::optional<Term> divide(const Term& term, const Monomial& b);

// Largest monomial that divides both; its coefficient is positive.
Monomial common_divisor(const Monomial& a, const Term& term);

// Largest monomial that divides every term of a (and its constant part); a is not 0.
Monomial content(Index a);

// a == quotient * b + remainder, with every recognized multiple of b in the quotient.
struct Multiples {
  Index quotient;
  Index remainder;
};
Multiples split_multiples(Index a, Index b);

}  // namespace litz
