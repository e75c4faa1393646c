#include "codegen/cuda/cuda_artifact.h"

#include <algorithm>
#include <unordered_map>

#include "codegen/cpp/cpp_text.h"
#include "codegen/cpp/device_artifact.h"
#include "codegen/cuda/cuda_kernel.h"

namespace litz {
CudaProgram print_cuda_program(const Plan& plan) {
  PreludeTarget target;
  target.cuda = true;
  Prelude prelude(target);
  CudaProgram program;
  std::string kernels;
  std::unordered_map<std::string, size_t> known;
  for (const Kernel& kernel : plan.kernels) {
    CudaKernel printed = print_cuda_kernel(*plan.program, kernel, prelude);
    const auto [found, added] =
        known.emplace(printed.device_text + printed.host_text, program.kernels.size());
    if (added) {
      const std::string number = std::to_string(program.kernels.size());
      const std::string name = "k" + number;
      program.kernels.push_back(name);
      if (printed.scratch_bytes != 0) program.kernels.push_back(name + std::string(kCudaFinish));
      kernels += "\n" + origins_comment(kernel) + "\n" +
                 replace_all(printed.device_text, kCudaKernelName, name);
      program.host_text += "\n" + replace_all(replace_all(printed.host_text, kCudaKernelName, name),
                                              kCudaKernelNumber, number);
    }
    program.scratch_bytes = std::max(program.scratch_bytes, printed.scratch_bytes);
    program.calls.push_back({program.kernels[found->second], std::move(printed.buffers),
                             std::move(printed.symbols), true});
  }
  program.text = prelude.text();
  program.kernels_begin = program.text.size();
  program.text += kernels;
  return program;
}

CppSources print_cuda_artifact(const Plan& plan, const CudaProgram& program, const CudaImage& image,
                               const std::string& description) {
  DeviceCode code = {image.target, {image.bytes}, {}};
  for (const std::string& name : program.kernels) code.functions.push_back({name, 0});
  CppRunOptions options;
  options.description = description;
  options.scratch_bytes = program.scratch_bytes;
  Prelude prelude(PreludeTarget{});
  return print_device_artifact(plan, program.calls, program.host_text, code, prelude, options);
}

}  // namespace litz
