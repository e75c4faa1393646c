// Removes operations whose results nobody reads, and loops that compute no element: those that follow
// may count on every loop being walked. Outputs of the program, mutated inputs and library ops with
// side effects are roots.
#pragma once

#include "ir/program.h"

namespace litz {

// The operations to keep, in program order.
std::vector<OperationId> live_operations(const Program& program);

}  // namespace litz
