// A whole plan for a GPU: CUDA C++ for all kernels in one program, and, once that is compiled, the
// C++ source of the artifact that launches them.
#pragma once

#include <string>
#include <vector>

#include "codegen/cpp/cpp_artifact.h"
#include "codegen/cpp/cpp_run.h"

namespace litz {

struct CudaProgram {
  std::string text;                  // kernels.cu
  size_t kernels_begin = 0;          // where in it the kernels are, behind what they use
  std::vector<std::string> kernels;  // names of its functions
  // For each kernel of the plan, the host function that launches it.
  std::vector<KernelCall> calls;
  std::string host_text;
  int64_t scratch_bytes = 0;  // that one kernel at a time needs besides the plan's workspace
};

CudaProgram print_cuda_program(const Plan& plan);

struct CudaImage {
  std::string target;  // "sm_90"
  std::string bytes;   // a cubin
};

// One unit, compiled for the machine that the graph runs on.
CppSources print_cuda_artifact(const Plan& plan, const CudaProgram& program, const CudaImage& image,
                               const std::string& description);

}  // namespace litz
