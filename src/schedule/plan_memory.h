// Storage for every buffer of a plan: outputs from the host, everything else that is materialised
// at a planned offset of one workspace.
//
// Intermediates whose lives do not overlap share bytes: best fit over free blocks, which merge, for
// constant sizes, exact fit for symbolic ones. A kernel's result takes over the bytes of an operand
// that dies in that kernel where every iteration reads only the element it writes.
#pragma once

#include <vector>

#include "schedule/plan.h"

namespace litz {

// Fills plan.storage and plan.workspace_bytes. plan.steps and plan.kernels are final.
void plan_memory(Plan& plan, bool reuse);

}  // namespace litz
