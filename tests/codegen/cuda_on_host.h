// Runs CUDA C++ kernels without a GPU: the text is compiled as C++, threads of a block take turns.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/simt/simt_program.h"
#include "prelude_harness.h"

namespace litz::testing {

// Kernels of float32 and integers alone: halves are instructions of the device.
class CudaOnHost {
 public:
  explicit CudaOnHost(const SimtProgram& program);

  // Launches a kernel's functions with these pointers, scratch memory first. What a thread did that
  // has no meaning on a device, or an empty string.
  std::string run(size_t kernel, const std::vector<void*>& pointers) const;

 private:
  const SimtProgram& program_;
  std::unique_ptr<Library> library_;
};

}  // namespace litz::testing
