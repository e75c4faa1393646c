// A whole plan as Triton: one module of Python with all kernels.
#pragma once

#include <string>
#include <vector>

#include "codegen/common/device_call.h"
#include "codegen/triton/triton_kernel.h"
#include "schedule/plan.h"
#include "support/error.h"

namespace litz {

struct TritonProgram {
  TritonDevice device;
  struct Function {
    std::string name;                    // "litz_add_k0", "litz_sum_k1_finish"
    std::vector<std::string> signature;  // types of its arguments: "*fp32", "i64"
    std::vector<int> aligned;            // arguments that are multiples of 16 bytes
    int warps = 4;
    int stages = 1;
    bool checks = false;  // needs assertions
  };
  TritonPrelude prelude;  // what the kernels use
  std::vector<Function> functions;
  struct Kernel {
    std::string name;   // "litz_add_k0"
    size_t first = 0;   // of its functions
    std::string title;  // a comment
    TritonKernel printed;
    std::vector<KernelId> runs;  // the first one of the plan that is this one, or several together

    std::string source() const;  // its functions under their names, the comment in front
  };
  std::vector<Kernel> kernels;  // each once
  DeviceCalls calls;

  std::string text() const;  // kernels.py
  std::string kernels_text() const;
};

// Fails where a kernel cannot be printed as Triton, and says why.
Result<TritonProgram> print_triton_program(const Plan& plan, const TritonDevice& device = {});

// Kernels of a program with other tiles, as a program without calls.
struct TritonVariants {
  TritonProgram program;
  std::vector<size_t> of;  // by kernel: which one of the given program it may stand for
};
TritonVariants print_triton_variants(const Plan& plan, const TritonProgram& program,
                                     const std::vector<size_t>& kernels);
// Puts kernel `other` of `others`, which are variants, in the place of `kernel`.
void replace_kernel(TritonProgram& program, size_t kernel, const TritonProgram& others,
                    size_t other);

}  // namespace litz
