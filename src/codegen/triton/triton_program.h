// A whole plan as Triton: one module of Python with all kernels.
#pragma once

#include <string>
#include <vector>

#include "codegen/triton/triton_kernel.h"
#include "schedule/plan.h"
#include "support/error.h"

namespace litz {

struct TritonProgram {
  struct Function {
    std::string name;                    // "k0", "k1_finish"
    std::vector<std::string> signature;  // types of its arguments: "*fp32", "i64"
    std::vector<int> aligned;            // arguments that are multiples of 16 bytes
    int warps = 4;
    int stages = 1;
    bool checks = false;  // needs assertions
  };
  std::string text;          // kernels.py
  size_t kernels_begin = 0;  // where in it the kernels are, behind what they use
  std::vector<Function> functions;
  struct Kernel {
    std::string name;  // "k0"
    size_t first = 0;  // of its functions
    TritonKernel printed;
  };
  std::vector<Kernel> kernels;  // each once
  struct Call {
    size_t kernel = 0;
    std::vector<BufferId> buffers;
    std::vector<Index> symbols;
    KernelId launched_with;  // the kernel itself, or the one whose call launches it, too
  };
  std::vector<Call> calls;  // for each kernel of the plan
};

// Fails where a kernel cannot be printed as Triton, and says why.
Result<TritonProgram> print_triton_program(const Plan& plan);

}  // namespace litz
