#include "runtime/device_modules.h"

#include <algorithm>

namespace litz {
namespace {

// What every kernel may have of dynamic shared memory without asking.
constexpr int64_t kFreeSharedBytes = int64_t{48} << 10;
constexpr int64_t kMaxGrid[3] = {INT32_MAX, 65535, 65535};

}  // namespace

// Errors are ignored: at the end of a process the driver may have gone before.
DeviceModule::~DeviceModule() {
  if (context_ == nullptr) return;
  {
    CudaContextScope scope(*driver_, context_);
    if (!loaded_.empty() || !constants_.empty()) driver_->context_synchronize();
    for (const auto& [bytes, address] : constants_) driver_->free(address);
    for (CudaModule module : loaded_) driver_->module_unload(module);
  }
  driver_->primary_context_release(device_);
}

std::string DeviceModule::load(const LitzDeviceCode* code, int32_t device) {
  const CudaDriver& driver = *driver_;
  code_ = code;
  CudaStatus status = driver.device_get(&device_, device);
  if (status != 0) {
    return "there is no device cuda:" + std::to_string(device) + ": " + driver.describe(status);
  }
  status = driver.primary_context_retain(&context_, device_);
  if (status != 0) {
    context_ = nullptr;
    return "cuda:" + std::to_string(device) + " cannot be used: " + driver.describe(status);
  }
  if (code == nullptr) return {};
  CudaContextScope scope(driver, context_);
  status = scope.status();
  for (int32_t i = 0; i < code->num_images && status == 0; ++i) {
    CudaModule module = nullptr;
    status = driver.module_load(&module, code->images[i].bytes);
    if (status == 0) loaded_.push_back(module);
  }
  if (status != 0) {
    std::string fault = "kernels cannot be loaded: " + driver.describe(status);
    if (status == CudaDriver::kInvalidImage || status == CudaDriver::kNoBinaryForDevice ||
        status == CudaDriver::kUnsupportedPtxVersion) {
      fault += "; they were compiled for " + std::string(code->target) + ", the device is " +
               driver.architecture(device_) + "; compile the graph again";
    }
    return fault;
  }
  const auto count = static_cast<size_t>(code->num_kernels);
  functions_.resize(count);
  shared_limits_ = std::make_unique<std::atomic<int64_t>[]>(count);
  for (size_t k = 0; k < count; ++k) {
    const LitzDeviceKernel& kernel = code->kernels[k];
    status = driver.module_function(&functions_[k], loaded_[static_cast<size_t>(kernel.image)],
                                    kernel.name);
    if (status != 0) {
      return "the kernel " + std::string(kernel.name) +
             " cannot be loaded: " + driver.describe(status);
    }
    shared_limits_[k] = kFreeSharedBytes;
  }
  return {};
}

int DeviceModule::fail(CudaStatus status, const std::string& doing, std::string* message) const {
  *message = doing + ": " + driver_->describe(status);
  return status == CudaDriver::kOutOfMemory ? LITZ_OUT_OF_MEMORY : LITZ_ERROR;
}

int DeviceModule::raise_shared_limit(size_t kernel, int64_t bytes, std::string* message) {
  const std::lock_guard lock(mutex_);
  if (bytes <= shared_limits_[kernel].load(std::memory_order_relaxed)) return LITZ_OK;
  const CudaStatus status = driver_->set_function_attribute(
      functions_[kernel], CudaDriver::kMaxDynamicSharedBytes, static_cast<int>(bytes));
  if (status != 0) {
    return fail(status,
                "giving the kernel " + std::string(code_->kernels[kernel].name) + " " +
                    std::to_string(bytes) + " bytes of shared memory",
                message);
  }
  shared_limits_[kernel].store(bytes, std::memory_order_release);
  return LITZ_OK;
}

int DeviceModule::launch(int32_t kernel, const int64_t* grid, int32_t threads, int64_t shared_bytes,
                         void** arguments, CudaStream stream, std::string* message) {
  const auto index = static_cast<size_t>(kernel);
  if (index >= functions_.size()) {
    *message = "the graph has no kernel number " + std::to_string(kernel);
    return LITZ_ERROR;
  }
  unsigned blocks[3];
  for (int d = 0; d < 3; ++d) {
    if (grid[d] == 0) return LITZ_OK;
    if (grid[d] < 0 || grid[d] > kMaxGrid[d]) {
      *message = "the kernel " + std::string(code_->kernels[index].name) +
                 " is too large: " + std::to_string(grid[d]) + " blocks in dimension " +
                 std::to_string(d);
      return LITZ_ERROR;
    }
    blocks[d] = static_cast<unsigned>(grid[d]);
  }
  if (shared_bytes > shared_limits_[index].load(std::memory_order_acquire)) {
    const int raised = raise_shared_limit(index, shared_bytes, message);
    if (raised != LITZ_OK) return raised;
  }
  const CudaStatus status = driver_->launch(
      functions_[index], blocks[0], blocks[1], blocks[2], static_cast<unsigned>(threads), 1, 1,
      static_cast<unsigned>(shared_bytes), stream, arguments, nullptr);
  if (status == 0) return LITZ_OK;
  return fail(status, "launching the kernel " + std::string(code_->kernels[index].name), message);
}

// Other streams may use the copy as soon as this returns, so it waits for the upload.
int DeviceModule::constant(const void* bytes, int64_t num_bytes, CudaStream stream, void** data,
                           std::string* message) {
  const std::lock_guard lock(mutex_);
  CudaAddress& address = constants_[bytes];
  if (address == 0) {
    const auto size = static_cast<size_t>(std::max<int64_t>(num_bytes, 1));
    CudaStatus status = driver_->allocate(&address, size);
    if (status == 0) {
      status = driver_->copy_to_device(address, bytes, static_cast<size_t>(num_bytes), stream);
      if (status == 0) status = driver_->stream_synchronize(stream);
      if (status != 0) driver_->free(address);
    }
    if (status != 0) {
      constants_.erase(bytes);
      return fail(status, "uploading " + std::to_string(num_bytes) + " bytes of constants",
                  message);
    }
  }
  *data = reinterpret_cast<void*>(address);
  return LITZ_OK;
}

DeviceModules::DeviceModules(std::shared_ptr<const CudaDriver> driver, const LitzDeviceCode* code)
    : driver_(std::move(driver)), code_(code) {
  int count = 0;
  if (driver_->device_count(&count) == 0) modules_.resize(static_cast<size_t>(count));
}

Result<DeviceModule*> DeviceModules::on(int32_t device) {
  const std::lock_guard lock(mutex_);
  const auto index = static_cast<size_t>(device);
  if (index >= modules_.size()) {
    return Unsupported{"there is no device cuda:" + std::to_string(device) + "; this machine has " +
                       std::to_string(modules_.size()) + " CUDA devices"};
  }
  if (modules_[index] == nullptr) {
    std::unique_ptr<DeviceModule> module(new DeviceModule(driver_));
    const std::string fault = module->load(code_, device);
    if (!fault.empty()) return Unsupported{fault};
    modules_[index] = std::move(module);
  }
  return modules_[index].get();
}

}  // namespace litz
