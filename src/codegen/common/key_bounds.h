// Which keys of an attention can count for a stretch of queries, as far as comparisons of positions
// in its mask say so: the causal mask and windows.
#pragma once

#include <vector>

#include "schedule/plan.h"

namespace litz {

// The key's position is at most, or at least, first + step * the query's position; all other keys
// have the score -inf.
struct KeyBound {
  bool is_upper = true;
  Index first;  // over batch loops and sizes
  int64_t step = 0;
};

// The constant that a masked key has for its score.
bool is_minus_infinity(Expr e);

std::vector<KeyBound> find_key_bounds(Expr score, Index query, Index key);

// The same score, where comparisons of sums of positions are those of positions: dialects compute
// these in 32 bits where they fit.
Expr compare_positions(Expr score);

}  // namespace litz
