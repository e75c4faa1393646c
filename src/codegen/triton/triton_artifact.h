// The artifact of a plan whose kernels Triton has compiled.
#pragma once

#include <string>
#include <vector>

#include "codegen/cpp/cpp_artifact.h"
#include "codegen/triton/triton_program.h"

namespace litz {

// What became of a function of the program.
struct TritonImage {
  std::string bytes;  // a cubin
  int64_t shared_bytes = 0;
  int threads = 0;
  int added_arguments = 0;    // pointers that Triton wants behind the function's own arguments
  int64_t scratch_bytes = 0;  // for each program, that the first of these points to; 0: null
};

// `images` are those of the program's functions, for the architecture `target`.
CppSources print_triton_artifact(const Plan& plan, const TritonProgram& program,
                                 const std::string& target, const std::vector<TritonImage>& images,
                                 const std::string& description);

}  // namespace litz
