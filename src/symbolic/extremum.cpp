// min and max: flattened, without duplicates, and without operands that another one always beats.
#include <algorithm>
#include <vector>

#include "symbolic/node.h"

namespace litz {
namespace {

// Proofs are quadratic in the number of operands; beyond this only ranges are compared.
constexpr size_t kMaxProvenOperands = 16;

void flatten(IndexKind kind, Index a, std::vector<Index>& operands) {
  if (a.kind() == kind) {
    operands.insert(operands.end(), a.operands().begin(), a.operands().end());
  } else {
    operands.push_back(a);
  }
}

// True if `a` is the result whenever the choice is between a and b.
bool beats(IndexKind kind, Index a, Index b, bool prove) {
  const Index low = kind == IndexKind::kMin ? a : b;
  const Index high = kind == IndexKind::kMin ? b : a;
  return low.range().hi <= high.range().lo || (prove && prove_less_equal(low, high));
}

Index extremum(IndexKind kind, Index a, Index b) {
  std::vector<Index> operands;
  flatten(kind, a, operands);
  flatten(kind, b, operands);
  std::sort(operands.begin(), operands.end(), IndexLess());
  operands.erase(std::unique(operands.begin(), operands.end()), operands.end());

  const bool prove = operands.size() <= kMaxProvenOperands;
  std::vector<Index> kept;
  for (Index operand : operands) {
    const auto beaten_by = [&](Index other) { return beats(kind, other, operand, prove); };
    if (std::any_of(kept.begin(), kept.end(), beaten_by)) continue;
    std::erase_if(kept, [&](Index other) { return beats(kind, operand, other, prove); });
    kept.push_back(operand);
  }
  return kept.size() == 1 ? kept[0] : IndexBuilder::extremum(kind, kept);
}

}  // namespace

Index min(Index a, Index b) { return extremum(IndexKind::kMin, a, b); }
Index max(Index a, Index b) { return extremum(IndexKind::kMax, a, b); }

}  // namespace litz
