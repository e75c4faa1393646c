// Replaces loads of cheap Pointwise results by the expressions that compute them.
//
// A producer is computed at its uses instead of being stored where that does no harm:
//   trivial    no memory is read and few operations are done (full, arange, masks of positions)
//   copy-like  one element is read and at most a cast or a cheap operation applied
//   moved      nobody else needs it in memory, and all its readers together read no more elements
//              than it has, so no element is computed twice
//   broadcast  a few cheap operations on a few elements, read along a larger loop nest
//   mask       what an attention adds to its scores, and copies that it reads its operands from
//   softmax    exp(x - m) of few long rows, where kernels sum exponentials online
// Everything else is left to fuse_loops, which computes a value once and shares it.
#pragma once

#include <vector>

#include "ir/program.h"
#include "schedule/schedule.h"

namespace litz {

// For each operation those that are computed inside it.
using AbsorbedOperations = IdVector<OperationId, std::vector<OperationId>>;

struct InlinedProgram {
  Program program;
  AbsorbedOperations absorbed;
};

InlinedProgram inline_producers(const Program& program, const ScheduleOptions& options = {});

}  // namespace litz
