// Fusion groups to kernels: members' bodies over the group's loops, values of the group passed on
// without memory, stages, stores for what is needed elsewhere, loops split, ordered by stride and
// merged.
#pragma once

#include "schedule/fuse_loops.h"
#include "schedule/inline_producers.h"
#include "schedule/plan.h"

namespace litz {

// The kernels of one group, in order: one, or for a scatter one that writes the initial values and
// one that scatters. `needed[buffer]` tells which buffers have to be in memory.
std::vector<Kernel> build_kernels(const Program& program, const FusionGroup& group,
                                  const std::vector<bool>& needed,
                                  const AbsorbedOperations& absorbed);

}  // namespace litz
