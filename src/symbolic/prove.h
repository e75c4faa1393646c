// Proofs under the assumption that a divisor is positive. Private to this room.
#pragma once

#include "symbolic/index.h"

namespace litz {

// a >= 0 wherever `positive` > 0. Sizes that are factors of `positive` are then at least 1.
bool prove_nonnegative_where(Index a, Index positive);

}  // namespace litz
