// The kernels of one artifact on CUDA devices: loaded once for each device that it runs on.
#pragma once

#include <litz/artifact.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/cuda_driver.h"
#include "support/error.h"

namespace litz {

// One artifact on one device. Thread-safe. The functions below want the device's context to be
// current: see `context`. They return LITZ_OK or a LitzStatus with `message` set.
class DeviceModule {
 public:
  ~DeviceModule();
  DeviceModule(const DeviceModule&) = delete;
  DeviceModule& operator=(const DeviceModule&) = delete;

  // As LitzHost::launch. Launching no blocks is no error.
  int launch(int32_t kernel, const int64_t* grid, int32_t threads, int64_t shared_bytes,
             void** arguments, CudaStream stream, std::string* message);

  // As LitzHost::constant.
  int constant(const void* bytes, int64_t num_bytes, CudaStream stream, void** data,
               std::string* message);

  // The primary context of the device, which PyTorch uses too.
  CudaContext context() const { return context_; }

 private:
  friend class DeviceModules;
  explicit DeviceModule(std::shared_ptr<const CudaDriver> driver) : driver_(std::move(driver)) {}
  // What went wrong, or an empty string.
  std::string load(const LitzDeviceCode* code, int32_t device);
  int raise_shared_limit(size_t kernel, int64_t bytes, std::string* message);
  int fail(CudaStatus status, const std::string& doing, std::string* message) const;

  const std::shared_ptr<const CudaDriver> driver_;
  const LitzDeviceCode* code_ = nullptr;
  CudaDevice device_ = 0;
  CudaContext context_ = nullptr;
  std::vector<CudaModule> loaded_;                         // by image
  std::vector<CudaFunction> functions_;                    // by kernel
  std::unique_ptr<std::atomic<int64_t>[]> shared_limits_;  // by kernel: bytes it may be given
  std::mutex mutex_;  // for what follows and for raising limits
  std::unordered_map<const void*, CudaAddress> constants_;
};

// Thread-safe.
class DeviceModules {
 public:
  // `code` is NULL for an artifact that only calls library ops, and must outlive this.
  DeviceModules(std::shared_ptr<const CudaDriver> driver, const LitzDeviceCode* code);

  // The module on device number `device`, loaded at the first call for it; or why there is none.
  Result<DeviceModule*> on(int32_t device);

  const CudaDriver& driver() const { return *driver_; }

 private:
  const std::shared_ptr<const CudaDriver> driver_;
  const LitzDeviceCode* code_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<DeviceModule>> modules_;  // by device
};

}  // namespace litz
