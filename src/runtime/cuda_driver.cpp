#include "runtime/cuda_driver.h"

#include <dlfcn.h>

namespace litz {

Result<std::shared_ptr<const CudaDriver>> CudaDriver::open(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    return Unsupported{"there is no CUDA driver: " + std::string(why != nullptr ? why : library) +
                       "; install NVIDIA's driver"};
  }
  auto driver = std::make_shared<CudaDriver>();
#define LITZ_CUDA_FIND(member, symbol, ...)                                              \
  driver->member = reinterpret_cast<CudaDriver::member##_type*>(dlsym(handle, #symbol)); \
  if (driver->member == nullptr) {                                                       \
    dlclose(handle);                                                                     \
    return Unsupported{"the CUDA driver " + library +                                    \
                       " has no function " #symbol "; install a newer one"};             \
  }
  LITZ_CUDA_DRIVER(LITZ_CUDA_FIND)
#undef LITZ_CUDA_FIND
  if (const CudaStatus status = driver->init(0); status != 0) {
    return Unsupported{"the CUDA driver does not start: " + driver->describe(status)};
  }
  return std::shared_ptr<const CudaDriver>(std::move(driver));
}

std::string CudaDriver::describe(CudaStatus status) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (error_name(status, &name) != 0 || name == nullptr) {
    return "CUDA error " + std::to_string(status);
  }
  if (error_string(status, &text) != 0 || text == nullptr) return name;
  return std::string(name) + " (" + text + ")";
}

std::string CudaDriver::architecture(CudaDevice device) const {
  int major = 0;
  int minor = 0;
  device_attribute(&major, kMajor, device);
  device_attribute(&minor, kMinor, device);
  return "sm_" + std::to_string(major) + std::to_string(minor);
}

double CudaDriver::bytes_per_second(CudaDevice device) const {
  int kilohertz = 0;
  int bits = 0;
  device_attribute(&kilohertz, kMemoryKilohertz, device);
  device_attribute(&bits, kMemoryBusBits, device);
  constexpr double kTransfers = 2;  // of each clock
  return kilohertz * 1e3 * kTransfers * bits / 8;
}

CudaContextScope::CudaContextScope(const CudaDriver& driver, CudaContext context)
    : driver_(driver), context_(context) {
  status_ = driver_.context_current(&previous_);
  if (status_ == 0 && previous_ != context_) status_ = driver_.context_set_current(context_);
}

// A thread that had none keeps the context, as one that CUDA's runtime library has used does.
CudaContextScope::~CudaContextScope() {
  if (status_ == 0 && previous_ != nullptr && previous_ != context_) {
    driver_.context_set_current(previous_);
  }
}

}  // namespace litz
