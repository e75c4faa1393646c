#include "codegen/cuda/cuda_artifact.h"

#include "codegen/cpp/device_artifact.h"
#include "codegen/cuda/cuda_dialect.h"

namespace litz {
SimtProgram print_cuda_program(const Plan& plan) {
  return print_simt_program(plan, cuda_dialect(), ThreadHeuristics{});
}

CppSources print_cuda_artifact(const Plan& plan, const SimtProgram& program, const CudaImage& image,
                               const std::string& description) {
  DeviceCode code = {image.target, {image.bytes}, {}};
  for (const SimtFunction& function : program.functions)
    code.functions.push_back({function.name, 0});
  CppRunOptions options;
  options.description = description;
  options.scratch_bytes = program.scratch_bytes;
  Prelude prelude(PreludeTarget{});
  return print_device_artifact(plan, program.calls, program.host_text, code, prelude, options);
}

}  // namespace litz
