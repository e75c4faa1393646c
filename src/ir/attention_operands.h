// How an attention's operands lie in memory (Attention, ir/program.h).
#pragma once

#include "ir/program.h"

namespace litz {

// Whether elements that are neighbours along the loop variable are neighbours in the buffer that is
// loaded.
bool is_contiguous_along(const Program& program, Expr load, Index variable);

}  // namespace litz
