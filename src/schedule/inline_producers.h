// Replaces loads of cheap Pointwise results by the expressions that compute them.
//
// A producer is computed at its uses instead of being stored where that does no harm:
//   trivial    no memory is read and few operations are done (full, arange, masks of positions)
//   copy-like  one element is read and at most a cast or a cheap operation applied
//   sole use   one operation reads it, at one position, no more often than there are elements
//   broadcast  a few cheap operations on a few elements, read along a larger loop nest
// Everything else is left to fuse_loops, which computes a value once and shares it.
#pragma once

#include "ir/program.h"
#include "schedule/schedule.h"

namespace litz {

Program inline_producers(const Program& program);

}  // namespace litz
