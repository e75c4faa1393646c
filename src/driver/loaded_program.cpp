#include "driver/loaded_program.h"

namespace litz {

std::string LoadedProgram::load(const std::shared_ptr<const CudaDriver>& driver, int32_t device) {
  std::vector<int32_t> image_numbers;  // -1: it is empty
  for (const std::string& image : program_.images) {
    image_numbers.push_back(image.empty() ? -1 : static_cast<int32_t>(code_images_.size()));
    if (!image.empty()) code_images_.push_back({image.data(), static_cast<int64_t>(image.size())});
  }
  for (const DeviceProgram::Function& function : program_.functions) {
    const int32_t image = image_numbers[function.image];
    numbers_.push_back(image < 0 ? -1 : static_cast<int32_t>(kernels_.size()));
    if (image >= 0) kernels_.push_back({function.name.c_str(), image});
  }
  code_ = {arch_.c_str(), code_images_.data(), kernels_.data(),
           static_cast<int32_t>(code_images_.size()), static_cast<int32_t>(kernels_.size())};
  modules_ = std::make_unique<DeviceModules>(driver, &code_);
  Result<DeviceModule*> module = modules_->on(device);
  if (!module) return module.reason();
  module_ = *module;
  return {};
}

std::optional<TimedRun> LoadedProgram::run_of(const Plan& plan, size_t kernel,
                                              const std::vector<BufferId>& buffers) const {
  const DeviceProgram::Kernel& k = program_.kernels[kernel];
  if (k.launches.empty()) return std::nullopt;
  TimedRun run;
  run.memory_bytes = k.scratch_bytes;
  for (BufferId buffer : buffers) {
    const std::optional<int64_t> bytes = known_bytes(plan, buffer);
    if (!bytes) return std::nullopt;
    run.memory_bytes.push_back(*bytes);
  }
  for (TimedRun::Launch launch : k.launches) {
    launch.kernel = numbers_[static_cast<size_t>(launch.kernel)];
    if (launch.kernel < 0) return std::nullopt;
    run.launches.push_back(launch);
  }
  return run;
}

}  // namespace litz
