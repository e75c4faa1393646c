// How long kernels take on a CUDA device, on memory of their own that holds zeros at first.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device_modules.h"
#include "support/error.h"

namespace litz {

// Launches one after the other with the same pointers as arguments, and for each some more, which
// are null but for memory of its own.
struct TimedRun {
  struct Launch {
    int32_t kernel = 0;  // of the module
    int64_t grid[3] = {1, 1, 1};
    int32_t threads = 0;
    int64_t shared_bytes = 0;
    int32_t more_arguments = 0;  // pointers: the first to memory of its own, if it needs any
    int64_t own_bytes = 0;
  };
  std::vector<Launch> launches;
  std::vector<int64_t> memory_bytes;  // of what each pointer points to
};

// Works on a stream of its own, so that it neither waits for the caller's work nor is waited for.
class KernelTimer {
 public:
  // On device number `device`.
  static Result<std::unique_ptr<KernelTimer>> open(std::shared_ptr<const CudaDriver> driver,
                                                   int32_t device);
  ~KernelTimer();
  KernelTimer(const KernelTimer&) = delete;
  KernelTimer& operator=(const KernelTimer&) = delete;

  // The median of some runs, in seconds, each of which finds the caches without its memory. Where
  // the device has not the memory, or a launch fails, the reason.
  Result<double> seconds(DeviceModule& module, const TimedRun& run);

 private:
  explicit KernelTimer(std::shared_ptr<const CudaDriver> driver) : driver_(std::move(driver)) {}
  std::string prepare(int32_t device);
  std::string reserve(int64_t bytes);
  std::string run_once(DeviceModule& module, const TimedRun& run, double* seconds);

  const std::shared_ptr<const CudaDriver> driver_;
  CudaDevice device_ = 0;
  CudaContext context_ = nullptr;
  CudaStream stream_ = nullptr;
  CudaEvent start_ = nullptr;
  CudaEvent end_ = nullptr;
  CudaAddress memory_ = 0;
  int64_t memory_bytes_ = 0;
  CudaAddress flushed_ = 0;
  int64_t flushed_bytes_ = 0;
};

}  // namespace litz
