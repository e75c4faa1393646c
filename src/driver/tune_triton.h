// Chooses the tiles of Triton kernels by measuring them on the device.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/triton/triton_artifact.h"
#include "codegen/triton/triton_program.h"
#include "runtime/cuda_driver.h"
#include "schedule/plan.h"
#include "support/error.h"

namespace litz {

// Where kernels are compiled and timed.
struct TuningTools {
  std::shared_ptr<const CudaDriver> driver;
  int32_t device = 0;
  std::string arch;  // "sm_90"
  // Images of a program's functions; one that cannot be compiled is empty.
  std::function<Result<std::vector<TritonImage>>(const TritonProgram&)> compile;
  double seconds = 0;  // that measuring may take, without compiling
};

struct Tuned {
  std::string log;           // what was measured, one line for each kernel
  bool is_finished = false;  // there was time for all of it
};

// Kernels that take a notable share of the plan's time on the device get the fastest of some tiles,
// if that is faster than the tile that they have; `images` are the program's. Kernels whose sizes
// are known only at run time, or that store to positions known only then, keep theirs, and so do
// all that there is no time for. Where the device cannot be used or the variants cannot be
// compiled, why.
Result<Tuned> tune_triton(const Plan& plan, TritonProgram& program,
                          std::vector<TritonImage>& images, const TuningTools& tools);

}  // namespace litz
