// Removes operations whose results nobody reads, and loops that compute no element: those that
// follow may count on every loop being walked. Outputs of the program, mutated inputs, library ops
// with side effects and checks that eager would do are roots.
#pragma once

#include "schedule/inline_producers.h"

namespace litz {

// The operations to keep, in program order. What is computed inside others needs no kernel of its
// own for its checks.
std::vector<OperationId> live_operations(const Program& program,
                                         const AbsorbedOperations& absorbed);

}  // namespace litz
