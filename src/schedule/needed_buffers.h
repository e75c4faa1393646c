// Which buffers have to be in memory: outputs, inputs, what another group reads, and results whose
// checks nobody would do for all elements otherwise.
#pragma once

#include <vector>

#include "schedule/fuse_loops.h"

namespace litz {

std::vector<bool> needed_buffers(const Program& program, const std::vector<OperationId>& operations,
                                 const FusionResult& fusion);

}  // namespace litz
