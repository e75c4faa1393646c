// A whole plan for a GPU: CUDA C++ for all kernels in one program, and, once that is compiled, the
// C++ source of the artifact that launches them.
#pragma once

#include <string>
#include <vector>

#include "codegen/cpp/cpp_artifact.h"
#include "codegen/simt/simt_program.h"

namespace litz {

SimtProgram print_cuda_program(const Plan& plan);
SimtVariants print_cuda_variants(const Plan& plan, const SimtProgram& program,
                                 const std::vector<size_t>& kernels);

// The program as no more than `most` programs, for compilers that run at once, each with about as
// much to do and with no less than a compiler's start costs. Says of each kernel in which it is.
std::vector<std::string> split_cuda_program(SimtProgram& program, size_t most);

// What the programs were compiled to.
struct DeviceImages {
  std::string target;               // "sm_90"
  std::vector<std::string> images;  // cubins
};

// One unit, compiled for the machine that the graph runs on.
CppSources print_cuda_artifact(const Plan& plan, const SimtProgram& program,
                               const DeviceImages& compiled, const std::string& description);

}  // namespace litz
