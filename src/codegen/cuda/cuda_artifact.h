// A whole plan for a GPU: CUDA C++ for all kernels in one program, and, once that is compiled, the
// C++ source of the artifact that launches them.
#pragma once

#include <string>
#include <vector>

#include "codegen/cpp/cpp_artifact.h"
#include "codegen/simt/simt_program.h"

namespace litz {

SimtProgram print_cuda_program(const Plan& plan);

struct CudaImage {
  std::string target;  // "sm_90"
  std::string bytes;   // a cubin
};

// One unit, compiled for the machine that the graph runs on.
CppSources print_cuda_artifact(const Plan& plan, const SimtProgram& program, const CudaImage& image,
                               const std::string& description);

}  // namespace litz
