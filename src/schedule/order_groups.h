// The order in which groups run: dependences first, otherwise as early operations of the graph as
// possible, and where several are ready the one that frees the most memory.
#pragma once

#include <vector>

#include "schedule/fuse_loops.h"

namespace litz {

// Positions in `fusion.groups`. Throws InternalError on a cycle.
std::vector<uint32_t> order_groups(const Program& program, const FusionResult& fusion);

}  // namespace litz
