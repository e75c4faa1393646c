// Compiled kernels on a device, to be timed (tune_kernels.h, triton_kernel_times.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "driver/timed_kernels.h"
#include "runtime/cuda_driver.h"
#include "runtime/device_modules.h"
#include "runtime/kernel_timer.h"
#include "schedule/plan.h"

namespace litz {

// A dialect's program, compiled, as a device sees it.
struct DeviceProgram {
  std::vector<std::string> images;  // an empty one has no functions: it could not be compiled
  struct Function {
    std::string name;
    size_t image = 0;
  };
  std::vector<Function> functions;
  struct Kernel {
    std::string name;
    std::string tile;            // what a program or a block works on, in words
    std::vector<KernelId> runs;  // of the plan: one, or several together
    bool checks = false;
    // Bytes of what its pointers in front of those to buffers point to.
    std::vector<int64_t> scratch_bytes;
    // `kernel` is the number of a function. Empty where they are known only at run time.
    std::vector<TimedRun::Launch> launches;
  };
  std::vector<Kernel> kernels;
};

class LoadedProgram {
 public:
  // For the architecture `arch`: "sm_90".
  LoadedProgram(DeviceProgram program, std::string arch)
      : program_(std::move(program)), arch_(std::move(arch)) {}
  LoadedProgram(const LoadedProgram&) = delete;
  LoadedProgram& operator=(const LoadedProgram&) = delete;

  // What went wrong, or an empty string.
  std::string load(const std::shared_ptr<const CudaDriver>& driver, int32_t device);

  const DeviceProgram& program() const { return program_; }
  DeviceModule& module() const { return *module_; }

  // Nothing where a size is known only at run time or a function has no code.
  std::optional<TimedRun> run_of(const Plan& plan, size_t kernel,
                                 const std::vector<BufferId>& buffers) const;

 private:
  const DeviceProgram program_;
  const std::string arch_;
  std::vector<int32_t> numbers_;  // by function; -1: it has no code
  std::vector<LitzDeviceImage> code_images_;
  std::vector<LitzDeviceKernel> kernels_;
  LitzDeviceCode code_{};
  std::unique_ptr<DeviceModules> modules_;
  DeviceModule* module_ = nullptr;
};

}  // namespace litz
