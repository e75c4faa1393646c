#include "runtime/kernel_timer.h"

#include <algorithm>

namespace litz {
namespace {

constexpr int64_t kAlignment = 256;
constexpr int64_t kLeastFlushed = int64_t{64} << 20;
constexpr unsigned kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING
constexpr int kL2Bytes = 38;          // CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
constexpr double kSampleSeconds = 0.005;
constexpr int kLeastSamples = 5;
constexpr int kMostSamples = 21;

int64_t aligned(int64_t bytes) {
  return (std::max<int64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

Result<std::unique_ptr<KernelTimer>> KernelTimer::open(std::shared_ptr<const CudaDriver> driver,
                                                       int32_t device) {
  std::unique_ptr<KernelTimer> timer(new KernelTimer(std::move(driver)));
  const std::string fault = timer->prepare(device);
  if (!fault.empty()) return Unsupported{fault};
  return timer;
}

std::string KernelTimer::prepare(int32_t device) {
  CudaStatus status = driver_->device_get(&device_, device);
  if (status == 0) status = driver_->primary_context_retain(&context_, device_);
  if (status != 0) {
    context_ = nullptr;
    return "cuda:" + std::to_string(device) + " cannot be used: " + driver_->describe(status);
  }
  const CudaContextScope scope(*driver_, context_);
  status = scope.status();
  if (status == 0) status = driver_->stream_create(&stream_, kNonBlocking);
  if (status == 0) status = driver_->event_create(&start_, 0);
  if (status == 0) status = driver_->event_create(&end_, 0);
  int cache = 0;
  if (status == 0) status = driver_->device_attribute(&cache, kL2Bytes, device_);
  flushed_bytes_ = std::max(kLeastFlushed, int64_t{2} * cache);
  if (status == 0) status = driver_->allocate(&flushed_, static_cast<size_t>(flushed_bytes_));
  return status == 0 ? "" : "kernels cannot be timed: " + driver_->describe(status);
}

// Errors are ignored: there is nobody to tell.
KernelTimer::~KernelTimer() {
  if (context_ == nullptr) return;
  {
    const CudaContextScope scope(*driver_, context_);
    if (stream_ != nullptr) driver_->stream_synchronize(stream_);
    for (CudaAddress address : {memory_, flushed_}) {
      if (address != 0) driver_->free(address);
    }
    for (CudaEvent event : {start_, end_}) {
      if (event != nullptr) driver_->event_destroy(event);
    }
    if (stream_ != nullptr) driver_->stream_destroy(stream_);
  }
  driver_->primary_context_release(device_);
}

std::string KernelTimer::reserve(int64_t bytes) {
  if (bytes <= memory_bytes_) return {};
  if (memory_ != 0) driver_->free(memory_);
  memory_ = 0;
  memory_bytes_ = 0;
  CudaStatus status = driver_->allocate(&memory_, static_cast<size_t>(bytes));
  if (status != 0) {
    memory_ = 0;
    return "there are not " + std::to_string(bytes) +
           " bytes to time it on: " + driver_->describe(status);
  }
  memory_bytes_ = bytes;
  return {};
}

std::string KernelTimer::run_once(DeviceModule& module, const TimedRun& run, double* seconds) {
  std::vector<CudaAddress> pointers;
  CudaAddress next = memory_;
  for (int64_t bytes : run.memory_bytes) {
    pointers.push_back(next);
    next += static_cast<CudaAddress>(aligned(bytes));
  }
  std::vector<void*> arguments;
  for (CudaAddress& pointer : pointers) arguments.push_back(&pointer);
  void* none = nullptr;
  CudaAddress own = next;
  const size_t given = arguments.size();

  CudaStatus status = driver_->fill(flushed_, 0, static_cast<size_t>(flushed_bytes_), stream_);
  if (status == 0) status = driver_->event_record(start_, stream_);
  for (const TimedRun::Launch& launch : run.launches) {
    arguments.resize(given);
    arguments.resize(given + static_cast<size_t>(launch.more_arguments), &none);
    if (launch.own_bytes > 0 && launch.more_arguments > 0) arguments[given] = &own;
    std::string message;
    if (status == 0 && module.launch(launch.kernel, launch.grid, launch.threads,
                                     launch.shared_bytes, arguments.data(), stream_, &message) != 0)
      return message;
  }
  if (status == 0) status = driver_->event_record(end_, stream_);
  if (status == 0) status = driver_->event_synchronize(end_);
  float milliseconds = 0;
  if (status == 0) status = driver_->event_elapsed(&milliseconds, start_, end_);
  *seconds = milliseconds / 1e3;
  return status == 0 ? "" : "kernels cannot be timed: " + driver_->describe(status);
}

Result<double> KernelTimer::seconds(DeviceModule& module, const TimedRun& run) {
  const CudaContextScope scope(*driver_, context_);
  if (scope.status() != 0) return Unsupported{driver_->describe(scope.status())};
  int64_t bytes = 0;
  for (int64_t each : run.memory_bytes) bytes += aligned(each);
  int64_t own = 0;
  for (const TimedRun::Launch& launch : run.launches) own = std::max(own, launch.own_bytes);
  bytes += own;
  std::string fault = reserve(bytes);
  if (fault.empty()) {
    const CudaStatus status = driver_->fill(memory_, 0, static_cast<size_t>(bytes), stream_);
    if (status != 0) fault = "memory cannot be filled: " + driver_->describe(status);
  }
  double once = 0;
  for (int warmup = 0; warmup < 2 && fault.empty(); ++warmup) fault = run_once(module, run, &once);
  const int count = std::clamp(static_cast<int>(kSampleSeconds / std::max(once, 1e-7)),
                               kLeastSamples, kMostSamples);
  std::vector<double> samples(static_cast<size_t>(count));
  for (double& sample : samples) {
    if (fault.empty()) fault = run_once(module, run, &sample);
  }
  if (!fault.empty()) return Unsupported{fault};
  const auto middle = samples.begin() + count / 2;
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

}  // namespace litz
