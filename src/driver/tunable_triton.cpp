#include "driver/tunable_triton.h"

#include <algorithm>

namespace litz {
namespace {

std::vector<TimedRun::Launch> launches_of(const TritonProgram::Kernel& kernel,
                                          const std::vector<TritonImage>& images) {
  std::vector<TimedRun::Launch> launches;
  if (!kernel.printed.symbols.empty()) return {};
  for (size_t i = 0; i < kernel.printed.functions.size(); ++i) {
    const TritonFunction& function = kernel.printed.functions[i];
    const TritonImage& image = images[kernel.first + i];
    if (!function.programs.is_constant()) return {};
    const int64_t programs = function.programs.constant();
    launches.push_back({static_cast<int32_t>(kernel.first + i),
                        {programs, function.splits, 1},
                        image.threads,
                        image.shared_bytes,
                        image.added_arguments,
                        image.scratch_bytes * programs * function.splits});
  }
  return launches;
}

}  // namespace

DeviceProgram device_program(const TritonProgram& program, const std::vector<TritonImage>& images) {
  DeviceProgram result;
  for (const TritonImage& image : images) result.images.push_back(image.bytes);
  for (size_t i = 0; i < program.functions.size(); ++i)
    result.functions.push_back({program.functions[i].name, i});
  for (const TritonProgram::Kernel& kernel : program.kernels) {
    DeviceProgram::Kernel device;
    device.name = kernel.name;
    device.tile = kernel.printed.tile;
    device.runs = kernel.runs;
    device.checks = kernel.printed.checks;
    for (const TritonKernel::Partial& partial : kernel.printed.partials)
      device.scratch_bytes.push_back(partial_bytes(partial));
    device.launches = launches_of(kernel, images);
    result.kernels.push_back(std::move(device));
  }
  return result;
}

Result<TunableKernels::Variants> TunableTriton::make_variants(const std::vector<size_t>& kernels) {
  variants_ = print_triton_variants(plan_, program_, kernels);
  Result<std::vector<TritonImage>> images = compile_(variants_.program);
  if (!images) return Unsupported{images.reason()};
  variant_images_ = std::move(*images);
  return Variants{device_program(variants_.program, variant_images_), variants_.of};
}

void TunableTriton::replace(size_t kernel, size_t variant) {
  const TritonProgram::Kernel& before = program_.kernels[kernel];
  const TritonProgram::Kernel& after = variants_.program.kernels[variant];
  const auto at = [](auto& images, size_t i) {
    return images.begin() + static_cast<std::ptrdiff_t>(i);
  };
  images_.erase(at(images_, before.first),
                at(images_, before.first + before.printed.functions.size()));
  images_.insert(at(images_, before.first), at(variant_images_, after.first),
                 at(variant_images_, after.first + after.printed.functions.size()));
  replace_kernel(program_, kernel, variants_.program, variant);
}

}  // namespace litz
