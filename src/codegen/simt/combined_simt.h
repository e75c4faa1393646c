// Prints a launch of several kernels for the threads of a device: a function for each body, and the
// kernel that finds out for which of them a block works.
#pragma once

#include "codegen/common/combined_launch.h"
#include "codegen/simt/simt_kernel.h"

namespace litz {

SimtKernel print_combined_simt(const Program& program, const CombinedLaunch& launch,
                               const SimtDialect& dialect);

}  // namespace litz
