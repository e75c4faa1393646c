// Chooses how kernels share out their work by measuring them on the device, in any dialect.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codegen/common/device_call.h"
#include "driver/loaded_program.h"
#include "runtime/cuda_driver.h"
#include "schedule/plan.h"
#include "support/error.h"

namespace litz {

// Where kernels are timed.
struct TuningTools {
  std::shared_ptr<const CudaDriver> driver;
  int32_t device = 0;
  std::string arch;    // "sm_90"
  double seconds = 0;  // that measuring may take, without compiling
};

// A plan's kernels in some dialect, compiled, and other forms of them.
class TunableKernels {
 public:
  virtual ~TunableKernels() = default;

  virtual DeviceProgram program() const = 0;
  virtual const DeviceCalls& calls() const = 0;

  // Prints and compiles other forms of these kernels, with the same arguments.
  struct Variants {
    DeviceProgram program;
    std::vector<size_t> of;  // by kernel: which one it may stand for
  };
  virtual Result<Variants> make_variants(const std::vector<size_t>& kernels) = 0;
  // Puts one of the variants that were made in the place of a kernel.
  virtual void replace(size_t kernel, size_t variant) = 0;
};

struct Tuned {
  std::string log;           // what was measured, one line for each kernel
  bool is_finished = false;  // there was time for all of it
  size_t replaced = 0;       // kernels
};

// Kernels that take a notable share of the plan's time on the device get the fastest of some forms,
// if that is faster than the one that they have. Kernels whose sizes are known only at run time, or
// that store to positions known only then, keep theirs, and so do all that there is no time for.
// Where the device cannot be used or the variants cannot be compiled, why.
Result<Tuned> tune_kernels(const Plan& plan, TunableKernels& kernels, const TuningTools& tools);

}  // namespace litz
