#include "codegen/cuda/cuda_artifact.h"

#include <algorithm>
#include <numeric>

#include "codegen/cpp/device_artifact.h"
#include "codegen/cuda/cuda_dialect.h"

namespace litz {
namespace {

// Of kernels: NVRTC takes as long for them as for starting (0.05 s for an empty program).
constexpr size_t kBytesOfStart = 1500;

}  // namespace

SimtProgram print_cuda_program(const Plan& plan) {
  return print_simt_program(plan, cuda_dialect(), ThreadHeuristics{});
}

SimtVariants print_cuda_variants(const Plan& plan, const SimtProgram& program,
                                 const std::vector<size_t>& kernels) {
  return print_simt_variants(plan, program, kernels, cuda_dialect(), ThreadHeuristics{});
}

std::vector<std::string> split_cuda_program(SimtProgram& program, size_t most) {
  std::vector<std::string> sources;
  size_t bytes = 0;
  for (const SimtProgram::Kernel& kernel : program.kernels) {
    sources.push_back(kernel.source());
    bytes += sources.back().size();
  }
  const size_t count = std::clamp<size_t>(std::min(sources.size(), bytes / kBytesOfStart), 1, most);
  std::vector<size_t> longest_first(sources.size());
  std::iota(longest_first.begin(), longest_first.end(), size_t{0});
  std::stable_sort(longest_first.begin(), longest_first.end(),
                   [&](size_t a, size_t b) { return sources[a].size() > sources[b].size(); });
  std::vector<size_t> loads(count, 0);
  for (size_t kernel : longest_first) {
    const auto least = std::min_element(loads.begin(), loads.end());
    *least += sources[kernel].size();
    program.kernels[kernel].image = static_cast<size_t>(least - loads.begin());
  }
  std::vector<std::string> programs(count, program.prelude.text());
  for (size_t kernel = 0; kernel < sources.size(); ++kernel)
    programs[program.kernels[kernel].image] += sources[kernel];
  return programs;
}

CppSources print_cuda_artifact(const Plan& plan, const SimtProgram& program,
                               const DeviceImages& compiled, const std::string& description) {
  DeviceCode code = {compiled.target, compiled.images, {}};
  for (const SimtFunction& function : functions_of(program))
    code.functions.push_back({function.name, program.kernels[function.kernel].image});
  CppRunOptions options;
  options.description = description;
  options.aligned = program.relies_on_alignment;
  options.scratch_bytes = program.scratch_bytes();
  Prelude prelude(PreludeTarget{});
  std::vector<KernelCall> calls;
  for (uint32_t i = 0; i < program.calls.size(); ++i) {
    const DeviceCall& call = program.calls[i];
    if (call.launched_with == KernelId(i)) {
      const SimtProgram::Kernel& kernel = program.kernels[call.kernel];
      calls.push_back(
          {kernel.name, call.buffers, call.symbols, true, kernel.printed.takes_array, {}});
    } else {
      calls.push_back({"", {}, {}, false, false, call.launched_with});
    }
  }
  return print_device_artifact(plan, calls, program.host_text(), code, prelude, options);
}

}  // namespace litz
