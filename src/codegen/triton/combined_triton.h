// Prints a launch of several kernels as Triton: a function for each body, and the one that finds
// out for which kernel a program works.
#pragma once

#include "codegen/common/combined_launch.h"
#include "codegen/triton/triton_kernel.h"

namespace litz {

TritonKernel print_combined_triton(const Program& program, const CombinedLaunch& launch);

}  // namespace litz
