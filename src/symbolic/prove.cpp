// a >= 0 is proven by replacing one unknown after another by the end of its interval that makes a
// smallest. Where a == stride*x + rest and stride >= 0 with lo <= x, a >= stride*lo + rest holds
// point by point, whatever else depends on x; so the steps may be taken in any order, and each is
// sound by itself. docs/math/index-algebra.md has the argument.
#include "symbolic/prove.h"

#include <algorithm>
#include <vector>

#include "symbolic/divide.h"
#include "symbolic/monomial.h"
#include "symbolic/sum.h"

namespace litz {
namespace {

constexpr int kMaxDepth = 4;         // of proofs of signs inside a proof
constexpr int kMaxSteps = 128;       // replacements in one proof
constexpr int kMaxNestedProofs = 3;  // proofs started by the simplifier inside a proof

// Unknowns with symbolic bounds first: replacing them brings sizes in, which then cancel.
int rank(Index atom) {
  switch (atom.kind()) {
    case IndexKind::kSymbol:
      return atom.symbol_kind() == SymbolKind::kSize ? 4 : 0;
    case IndexKind::kMod:
      return 1;
    case IndexKind::kFloorDiv:
      return 2;
    default:
      return 3;
  }
}

// Distinct factors of the terms of a, in the order in which to replace them.
std::vector<Index> atoms_of(Index a) {
  std::vector<Index> atoms;
  const SumView view(a);
  for (const Term& term : view.terms()) {
    for (Index factor : factors_of(term.second)) atoms.push_back(factor);
  }
  std::sort(atoms.begin(), atoms.end(), [](Index x, Index y) {
    return rank(x) != rank(y) ? rank(x) < rank(y) : x.id() > y.id();
  });
  atoms.erase(std::unique(atoms.begin(), atoms.end()), atoms.end());
  return atoms;
}

// a == stride * atom + rest, taking atom once out of each term that has it.
LinearIn take_out(Index a, Index atom) {
  SumBuilder stride(a.context());
  SumBuilder rest(a.context());
  const SumView view(a);
  const Monomial divisor = {1, {atom}};
  for (const Term& term : view.terms()) {
    if (const auto part = divide(term, divisor)) {
      stride.add(part->second, part->first);
    } else {
      rest.add(term.second, term.first);
    }
  }
  rest.add_constant(view.constant());
  return {stride.finish(), rest.finish()};
}

class Prover {
 public:
  void assume_positive(Index a) {
    const auto monomial = as_monomial(a);
    if (!monomial) return;
    for (Index factor : monomial->factors) positive_.push_back(factor);
  }

  bool nonnegative(Index a, int depth = 0) {
    if (a.range().lo >= 0) return true;
    if (a.range().hi < 0 || !a.node()->symbolic || depth > kMaxDepth) return false;
    const auto proven = [&](Index operand) { return nonnegative(operand, depth + 1); };
    const auto operands = a.operands();
    switch (a.kind()) {
      case IndexKind::kConstant:
      case IndexKind::kSymbol:
        return false;
      case IndexKind::kMod:
        return true;
      case IndexKind::kFloorDiv:
        return proven(operands[0]);
      case IndexKind::kProduct:
      case IndexKind::kMin:
        return std::all_of(operands.begin(), operands.end(), proven);
      case IndexKind::kMax:
        return std::any_of(operands.begin(), operands.end(), proven);
      case IndexKind::kSum:
        return nonnegative_sum(a, depth);
    }
    return false;
  }

 private:
  bool nonnegative_sum(Index a, int depth) {
    while (steps_++ < kMaxSteps) {
      Index next;
      for (Index atom : atoms_of(a)) {
        const auto [stride, rest] = take_out(a, atom);
        const bool grows = nonnegative(stride, depth + 1);
        if (!grows && !nonnegative(-stride, depth + 1)) continue;
        if (atom.kind() == IndexKind::kMin || atom.kind() == IndexKind::kMax) {
          return nonnegative_cases(atom, grows, stride, rest, depth);
        }
        if (atom.kind() == IndexKind::kFloorDiv &&
            nonnegative(without_division(atom, grows, stride, rest), depth + 1)) {
          return true;
        }
        const Index bound = grows ? lower(atom) : upper(atom, depth);
        if (!bound.valid()) continue;
        next = stride * bound + rest;
        break;
      }
      if (!next.valid()) return false;
      a = next;
      if (a.kind() != IndexKind::kSum || a.range().lo >= 0) return nonnegative(a, depth);
    }
    return false;
  }

  // stride*atom + rest where atom is one of its operands: if atom is at the end that counts it may
  // be any of them, so all must hold; otherwise every operand bounds it, so one is enough.
  bool nonnegative_cases(Index atom, bool grows, Index stride, Index rest, int depth) {
    const auto operands = atom.operands();
    const auto proven = [&](Index x) { return nonnegative(stride * x + rest, depth + 1); };
    if ((atom.kind() == IndexKind::kMin) == grows) {
      return std::all_of(operands.begin(), operands.end(), proven);
    }
    return std::any_of(operands.begin(), operands.end(), proven);
  }

  // For e == stride*floor_div(x, b) + rest: something that is at least 0 only if e is. It comes
  // from x - b + 1 <= b*floor_div(x, b) <= x; where b does not divide the stride, b*e + b - 1 >= 0
  // is proven instead, which for integers is the same as e >= 0.
  Index without_division(Index atom, bool grows, Index stride, Index rest) {
    const Index x = atom.operands()[0];
    const Index b = atom.operands()[1];
    const Index bound = grows ? x - b + 1 : x;
    if (const auto k = exact_div(stride, b)) return *k * bound + rest;
    return stride * bound + b * rest + b - 1;
  }

  Index lower(Index atom) {
    IndexContext& context = atom.context();
    int64_t lo = atom.range().lo;
    if (lo <= 0 && std::find(positive_.begin(), positive_.end(), atom) != positive_.end()) lo = 1;
    return lo == ValueRange::kMin ? Index() : context.constant(lo);
  }

  Index upper(Index atom, int depth) {
    IndexContext& context = atom.context();
    if (atom.is_symbol() && atom.symbol_kind() != SymbolKind::kSize) {
      // The variable has a value, so its extent is at least 1.
      assume_positive(atom.extent());
      return atom.extent() - 1;
    }
    const int64_t hi = atom.range().hi;
    if (hi != ValueRange::kMax) return context.constant(hi);
    if (atom.kind() == IndexKind::kMod) return atom.operands()[1] - 1;
    if (atom.kind() == IndexKind::kFloorDiv) {
      const Index a = atom.operands()[0];
      const Index bound = upper_in_variables(a, depth);
      return bound == a ? Index() : divide_by_positive(bound, atom.operands()[1]);
    }
    return Index();
  }

  // An upper bound of a in which the variables are replaced where that is possible.
  Index upper_in_variables(Index a, int depth) {
    for (Index atom : atoms_of(a)) {
      if (rank(atom) != 0 || steps_++ >= kMaxSteps) break;
      const auto [stride, rest] = take_out(a, atom);
      if (nonnegative(stride, depth + 1)) {
        a = stride * upper(atom, depth) + rest;
      } else if (nonnegative(-stride, depth + 1)) {
        a = rest;
      }
    }
    return a;
  }

  std::vector<Index> positive_;
  int steps_ = 0;
};

bool run(Prover& prover, Index a) {
  if (a.range().lo >= 0) return true;
  if (a.range().hi < 0 || !a.node()->symbolic) return false;
  int& nesting = IndexBuilder::proof_depth(a.context());
  if (nesting >= kMaxNestedProofs) return false;
  ++nesting;
  bool proven = false;
  try {
    proven = prover.nonnegative(a);
  } catch (const IndexTooLarge&) {
    // A bound beyond int64 proves nothing.
  }
  --nesting;
  return proven;
}

}  // namespace

bool prove_nonnegative_where(Index a, Index positive) {
  Prover prover;
  prover.assume_positive(positive);
  return run(prover, a);
}

bool prove_nonnegative(Index a) {
  Prover prover;
  return run(prover, a);
}

bool prove_less(Index a, Index b) { return prove_nonnegative(b - a - 1); }
bool prove_less_equal(Index a, Index b) { return prove_nonnegative(b - a); }

}  // namespace litz
