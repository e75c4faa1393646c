#include "driver/tunable_cuda.h"

#include <algorithm>

namespace litz {
namespace {

std::vector<TimedRun::Launch> launches_of(const SimtKernel& kernel, size_t first) {
  std::vector<TimedRun::Launch> launches;
  if (!kernel.symbols.empty()) return {};
  for (const SimtKernel::Launch& launch : kernel.launches) {
    if (!launch.blocks.is_constant()) return {};
    TimedRun::Launch timed;
    timed.kernel = static_cast<int32_t>(first + launches.size());
    timed.grid[0] = launch.blocks.constant();
    timed.grid[1] = launch.splits;
    timed.threads = launch.threads;
    launches.push_back(timed);
  }
  return launches;
}

}  // namespace

DeviceProgram device_program(const SimtProgram& program, const std::vector<std::string>& images) {
  DeviceProgram result;
  result.images = images;
  for (const SimtFunction& function : functions_of(program))
    result.functions.push_back({function.name, program.kernels[function.kernel].image});
  size_t first = 0;
  for (const SimtProgram::Kernel& kernel : program.kernels) {
    DeviceProgram::Kernel device;
    device.name = kernel.name;
    device.tile = kernel.printed.tile;
    device.runs = kernel.runs;
    device.checks = kernel.printed.checks_values;
    device.scratch_bytes = {kernel.printed.scratch_bytes};
    device.launches = launches_of(kernel.printed, first);
    first += kernel.printed.launches.size();
    result.kernels.push_back(std::move(device));
  }
  return result;
}

Result<TunableKernels::Variants> TunableCuda::make_variants(const std::vector<size_t>& kernels) {
  variants_ = print_cuda_variants(plan_, program_, kernels);
  const std::vector<std::string> images = compile_(variants_.program);
  if (std::all_of(images.begin(), images.end(), [](const auto& i) { return i.empty(); }))
    return Unsupported{"NVRTC compiles none of their variants"};
  return Variants{device_program(variants_.program, images), variants_.of};
}

}  // namespace litz
