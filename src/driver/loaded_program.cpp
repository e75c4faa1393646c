#include "driver/loaded_program.h"

#include <algorithm>

namespace litz {

std::optional<int64_t> known_bytes(const Plan& plan, BufferId id) {
  const Program& program = *plan.program;
  const Index elements = storage_elements(program, program.buffer(id));
  if (!elements.is_constant()) return std::nullopt;
  return elements.constant() * static_cast<int64_t>(size_of(program.buffer(id).dtype));
}

bool depends_on_values(const Kernel& kernel, bool checks) {
  return std::any_of(kernel.stores.begin(), kernel.stores.end(), [&](const KernelStore& s) {
    const bool reads =
        std::find(kernel.reads.begin(), kernel.reads.end(), s.buffer) != kernel.reads.end();
    return !s.runtime_indices.empty() || s.mode != StoreMode::kStore || (checks && reads);
  });
}

std::string LoadedProgram::load(const std::shared_ptr<const CudaDriver>& driver, int32_t device) {
  numbers_.assign(images_.size(), -1);
  for (size_t i = 0; i < images_.size(); ++i) {
    if (images_[i].bytes.empty()) continue;
    numbers_[i] = static_cast<int32_t>(kernels_.size());
    code_images_.push_back(
        {images_[i].bytes.data(), static_cast<int64_t>(images_[i].bytes.size())});
    kernels_.push_back({program_.functions[i].name.c_str(), numbers_[i]});
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
  const TritonProgram::Kernel& k = program_.kernels[kernel];
  TimedRun run;
  if (!k.printed.symbols.empty()) return std::nullopt;
  for (const TritonKernel::Partial& partial : k.printed.partials)
    run.memory_bytes.push_back(partial_bytes(partial));
  for (BufferId buffer : buffers) {
    const std::optional<int64_t> bytes = known_bytes(plan, buffer);
    if (!bytes) return std::nullopt;
    run.memory_bytes.push_back(*bytes);
  }
  for (size_t i = 0; i < k.printed.functions.size(); ++i) {
    const TritonFunction& function = k.printed.functions[i];
    const TritonImage& image = images_[k.first + i];
    if (numbers_[k.first + i] < 0 || !function.programs.is_constant()) return std::nullopt;
    run.launches.push_back({numbers_[k.first + i],
                            {function.programs.constant(), function.splits, 1},
                            image.threads,
                            image.shared_bytes,
                            image.added_arguments,
                            image.scratch_bytes * function.programs.constant() * function.splits});
  }
  return run;
}

}  // namespace litz
