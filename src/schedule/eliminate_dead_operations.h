// Removes operations whose results nobody reads. Outputs of the program, mutated inputs and library
// ops with side effects are roots.
#pragma once

#include "ir/program.h"

namespace litz {

// The operations to keep, in program order.
std::vector<OperationId> live_operations(const Program& program);

}  // namespace litz
