// Lets small kernels that do not depend on each other run at once, as one step of the plan.
//
// A GPU takes as long to launch a kernel as to read some megabytes, and one small kernel leaves
// most of it idle: the step of an optimizer has one or two small kernels for each parameter. A
// kernel moves ahead into the first step, of the last ones, that comes after all that it depends
// on; never past a library op.
#pragma once

#include "schedule/plan.h"

namespace litz {

// A plan without storage yet. Kernels of more iterations stay alone.
void combine_kernels(Plan& plan, int64_t most_iterations);

}  // namespace litz
