// The rules of floor_div and mod. Private to this room.
#pragma once

#include <span>
#include <string_view>

#include "symbolic/index.h"

namespace litz {

// Gives an expression equal to floor_div(a, b), or to mod(a, b), or null where the rule does not
// apply; b > 0.
struct DivisionRule {
  std::string_view equation;
  Index (*apply)(Index a, Index b);
};

// In the order in which they are tried.
std::span<const DivisionRule> floor_div_rules();
std::span<const DivisionRule> mod_rules();

// True if b is proven to be positive, sizes taken to be at least 1.
bool may_divide(Index b);

// floor_div and mod by a b that is known to be positive, for the simplifier itself: divisors that
// it makes of other divisors are positive, whether or not may_divide can tell.
Index divide_by_positive(Index a, Index b);
Index reduce_by_positive(Index a, Index b);

}  // namespace litz
