// The CUDA driver's C interface, found at run time.
//
// Litz is built without CUDA. libcuda.so.1 comes with NVIDIA's kernel driver and is opened when the
// first graph for a CUDA device is loaded. The declarations are our own; handles are pointers that
// belong to the driver. All functions return zero on success.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "support/error.h"

namespace litz {

using CudaStatus = int;        // CUresult
using CudaDevice = int;        // CUdevice
using CudaContext = void*;     // CUcontext
using CudaModule = void*;      // CUmodule
using CudaFunction = void*;    // CUfunction
using CudaStream = void*;      // CUstream
using CudaEvent = void*;       // CUevent
using CudaAddress = uint64_t;  // CUdeviceptr

// X(member, symbol, signature)
#define LITZ_CUDA_DRIVER(X)                                                                        \
  X(init, cuInit, CudaStatus(unsigned flags))                                                      \
  X(device_count, cuDeviceGetCount, CudaStatus(int*))                                              \
  X(device_get, cuDeviceGet, CudaStatus(CudaDevice*, int ordinal))                                 \
  X(device_attribute, cuDeviceGetAttribute, CudaStatus(int*, int attribute, CudaDevice))           \
  X(context_current, cuCtxGetCurrent, CudaStatus(CudaContext*))                                    \
  X(context_set_current, cuCtxSetCurrent, CudaStatus(CudaContext))                                 \
  X(context_synchronize, cuCtxSynchronize, CudaStatus())                                           \
  X(primary_context_retain, cuDevicePrimaryCtxRetain, CudaStatus(CudaContext*, CudaDevice))        \
  X(primary_context_release, cuDevicePrimaryCtxRelease_v2, CudaStatus(CudaDevice))                 \
  X(module_load, cuModuleLoadData, CudaStatus(CudaModule*, const void* image))                     \
  X(module_unload, cuModuleUnload, CudaStatus(CudaModule))                                         \
  X(module_function, cuModuleGetFunction, CudaStatus(CudaFunction*, CudaModule, const char* name)) \
  X(set_function_attribute, cuFuncSetAttribute,                                                    \
    CudaStatus(CudaFunction, int attribute, int value))                                            \
  X(launch, cuLaunchKernel,                                                                        \
    CudaStatus(CudaFunction, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,  \
               unsigned block_y, unsigned block_z, unsigned shared_bytes, CudaStream,              \
               void** arguments, void** extra))                                                    \
  X(allocate, cuMemAlloc_v2, CudaStatus(CudaAddress*, size_t bytes))                               \
  X(free, cuMemFree_v2, CudaStatus(CudaAddress))                                                   \
  X(copy_to_device, cuMemcpyHtoDAsync_v2,                                                          \
    CudaStatus(CudaAddress, const void*, size_t bytes, CudaStream))                                \
  X(fill, cuMemsetD8Async, CudaStatus(CudaAddress, unsigned char value, size_t bytes, CudaStream)) \
  X(stream_create, cuStreamCreate, CudaStatus(CudaStream*, unsigned flags))                        \
  X(stream_destroy, cuStreamDestroy_v2, CudaStatus(CudaStream))                                    \
  X(stream_synchronize, cuStreamSynchronize, CudaStatus(CudaStream))                               \
  X(stream_is_capturing, cuStreamIsCapturing, CudaStatus(CudaStream, int* status))                 \
  X(event_create, cuEventCreate, CudaStatus(CudaEvent*, unsigned flags))                           \
  X(event_destroy, cuEventDestroy_v2, CudaStatus(CudaEvent))                                       \
  X(event_record, cuEventRecord, CudaStatus(CudaEvent, CudaStream))                                \
  X(event_synchronize, cuEventSynchronize, CudaStatus(CudaEvent))                                  \
  X(event_elapsed, cuEventElapsedTime,                                                             \
    CudaStatus(float* milliseconds, CudaEvent start, CudaEvent end))                               \
  X(error_name, cuGetErrorName, CudaStatus(CudaStatus, const char**))                              \
  X(error_string, cuGetErrorString, CudaStatus(CudaStatus, const char**))

struct CudaDriver {
  // The values of CUresult and CUdevice_attribute that Litz tells apart.
  static constexpr CudaStatus kOutOfMemory = 2;
  static constexpr CudaStatus kInvalidImage = 200;
  static constexpr CudaStatus kNoBinaryForDevice = 209;
  static constexpr CudaStatus kUnsupportedPtxVersion = 222;
  static constexpr int kMajor = 75;  // of the compute capability
  static constexpr int kMinor = 76;
  static constexpr int kMemoryKilohertz = 36;
  static constexpr int kMemoryBusBits = 37;
  static constexpr int kMaxDynamicSharedBytes = 8;  // CUfunction_attribute

#define LITZ_CUDA_MEMBER(member, symbol, ...) \
  using member##_type = __VA_ARGS__;          \
  member##_type* member = nullptr;
  LITZ_CUDA_DRIVER(LITZ_CUDA_MEMBER)
#undef LITZ_CUDA_MEMBER

  // Opens the library, which stays open until the process ends, and initialises it. The reason of a
  // failure says what is missing.
  static Result<std::shared_ptr<const CudaDriver>> open(
      const std::string& library = "libcuda.so.1");

  // "CUDA_ERROR_INVALID_VALUE (invalid argument)".
  std::string describe(CudaStatus status) const;

  // "sm_90".
  std::string architecture(CudaDevice device) const;
  // What the memory of a device can do; 0 where the driver does not say.
  double bytes_per_second(CudaDevice device) const;
};

// Makes a context current on this thread for a scope.
class CudaContextScope {
 public:
  CudaContextScope(const CudaDriver& driver, CudaContext context);
  ~CudaContextScope();
  CudaContextScope(const CudaContextScope&) = delete;
  CudaContextScope& operator=(const CudaContextScope&) = delete;

  CudaStatus status() const { return status_; }

 private:
  const CudaDriver& driver_;
  CudaContext context_;
  CudaContext previous_ = nullptr;
  CudaStatus status_ = 0;
};

}  // namespace litz
