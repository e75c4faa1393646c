// The order in which groups run: dependences first; among the groups that are ready, first those
// that are the last readers of all they read, which frees memory; otherwise, and always where
// `free_memory_early` is not set, the program's order.
#pragma once

#include <vector>

#include "schedule/fuse_loops.h"

namespace litz {

// Throws InternalError on a cycle.
std::vector<GroupId> order_groups(const Program& program, const FusionResult& fusion,
                                  bool free_memory_early = true);

}  // namespace litz
