// What of an attention's score ends rows of keys, and what has to be computed.
#pragma once

#include <vector>

#include "codegen/common/key_bounds.h"

namespace litz {

struct BoundedScore {
  // The score of the keys that all of `upper` let through; the others' is -inf.
  Expr rest;
  std::vector<KeyBound> upper;
  // All bounds that are known, those that `rest` still has among them.
  std::vector<KeyBound> all;
};

// What is masked does not count, whether a condition chooses -inf or a term adds it.
BoundedScore bounded_score(Expr score, Index query, Index key);

}  // namespace litz
