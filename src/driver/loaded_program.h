// A program of Triton kernels on a device, to be timed (tune_triton.h, choose_products.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codegen/triton/triton_artifact.h"
#include "codegen/triton/triton_program.h"
#include "runtime/cuda_driver.h"
#include "runtime/device_modules.h"
#include "runtime/kernel_timer.h"
#include "schedule/plan.h"

namespace litz {

// Bytes from the first element of a buffer on; nothing where they are known only at run time.
std::optional<int64_t> known_bytes(const Plan& plan, BufferId id);

// What would not be the same on zeros: stores to positions known only at run time, which all of
// them would be one, and checks of what the kernel itself has written before.
bool depends_on_values(const Kernel& kernel, bool checks);

class LoadedProgram {
 public:
  // `images`: of the program's functions. Both must outlive this.
  LoadedProgram(const TritonProgram& program, const std::vector<TritonImage>& images,
                const std::string& arch)
      : program_(program), images_(images), arch_(arch) {}

  // What went wrong, or an empty string.
  std::string load(const std::shared_ptr<const CudaDriver>& driver, int32_t device);

  DeviceModule& module() const { return *module_; }

  // Nothing where a size is known only at run time or a function has no code.
  std::optional<TimedRun> run_of(const Plan& plan, size_t kernel,
                                 const std::vector<BufferId>& buffers) const;

 private:
  const TritonProgram& program_;
  const std::vector<TritonImage>& images_;
  const std::string arch_;
  std::vector<int32_t> numbers_;  // by function; -1: it has no code
  std::vector<LitzDeviceImage> code_images_;
  std::vector<LitzDeviceKernel> kernels_;
  LitzDeviceCode code_{};
  std::unique_ptr<DeviceModules> modules_;
  DeviceModule* module_ = nullptr;
};

}  // namespace litz
